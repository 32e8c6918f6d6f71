"""Schemas: the JSON schema of a tool's arguments, as short as models understand it.

Every request repeats it. What only `Tool.read` needs, such as lengths and bounds, is left out: a
call that breaks one is refused with the reason.
"""

from functools import cache
from typing import Any, cast

from pydantic import BaseModel

Schema = dict[str, Any]

_CHECKED_WHEN_CALLED = frozenset(
    {
        "additionalProperties", "exclusiveMaximum", "exclusiveMinimum", "maxItems", "maxLength",
        "maximum", "minItems", "minLength", "minimum", "title",
    }
)  # fmt: skip
_NULL = {"type": "null"}
REQUIRED = "required"
"""The key of a field that models are told to give. A call without it is answered by the tool."""


@cache
def whole_schema(arguments: type[BaseModel]) -> Schema:
    """Return the schema of the arguments with all that a call is checked by."""
    return arguments.model_json_schema()


def short_schema(arguments: type[BaseModel]) -> Schema:
    """Return the schema of the arguments: definitions in place, optional ones just not required."""
    whole = whole_schema(arguments)
    kept = {key: value for key, value in whole.items() if key != "$defs"}
    return _short(kept, whole.get("$defs", {}))


def required_only(schema: Schema, *more: str) -> Schema:
    """Return the schema of what a call must have, and of these arguments, without descriptions; of
    a tool with nothing but optional arguments, the first one."""
    required = cast(list[str], schema.get("required") or [*schema["properties"]][:1])
    required = [*required, *(name for name in more if name in schema["properties"])]
    kept: Schema = {
        name: {key: value for key, value in schema["properties"][name].items() if key in _FORM}
        for name in required
    }
    return {**schema, "properties": kept}


_FORM = frozenset({"type", "items", "enum", "anyOf", "properties", "required"})


def _short(part: Schema, definitions: Schema) -> Schema:
    """Return a schema without what a call is not written from."""
    if "$ref" in part:
        target = definitions[part["$ref"].rpartition("/")[2]]
        part = {**target, **{key: value for key, value in part.items() if key != "$ref"}}
    kept: Schema = {}
    for key, value in part.items():
        match key:
            case "properties":
                kept[key] = {name: _short(field, definitions) for name, field in value.items()}
                if wanted := [name for name, field in value.items() if field.get(REQUIRED) is True]:
                    kept[REQUIRED] = [*part.get(REQUIRED, ()), *wanted]
            case "required" if value is True or REQUIRED in kept:
                pass
            case "items":
                kept[key] = _short(value, definitions)
            case "anyOf":
                kept |= _choice(
                    [_short(choice, definitions) for choice in value if choice != _NULL]
                )
            case "default":
                kept |= {key: value} if value else {}
            case _ if key not in _CHECKED_WHEN_CALLED:
                kept[key] = value
            case _:
                pass
    return kept


def _choice(choices: list[Schema]) -> Schema:
    """Return a choice of schemas; of one, the schema itself."""
    return choices[0] if len(choices) == 1 else {"anyOf": choices}
