"""MCP arguments: checks the arguments of a call by the schema that the server gave for its tool."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, create_model, model_validator

from agiraph.core.tools.base import WAIT

DEEPEST = 16
"""Levels of a schema that are checked."""
MOST_NAMED = 10
_KEPT = frozenset(
    {"type", "enum", "const", "required", "dependentRequired", "minLength", "maxLength"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minItems", "maxItems", "minProperties", "maxProperties"}
)
"""Keywords that take no schema and whose check is quick."""


def form_of(name: str, schema: Mapping[str, Any]) -> type[BaseModel]:
    """Return a pydantic class that accepts the arguments that the schema allows.

    Its error messages are agiraph's own, because the server wrote the texts in the schema.
    """
    properties = schema.get("properties")
    order = list(cast(dict[str, Any], properties)) if isinstance(properties, dict) else []

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow")

        @model_validator(mode="before")
        @classmethod
        def check(cls, given: Any) -> Any:
            if fault := fault_in(schema, cast(dict[str, Any], given)):
                raise ValueError(fault)
            return given

        def model_post_init(self, context: Any, /) -> None:
            # `Tool.read` takes the attributes. A rule of the team looks at the first of them, in
            # the order of the schema.
            own = vars(self)
            if own.get(WAIT, ...) is None:
                del own[WAIT]
            every = {**own, **(self.__pydantic_extra__ or {})}
            own.clear()
            own.update({key: every[key] for key in order if key in every})
            own.update(every)

        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return dict(schema)

    if WAIT not in order:
        return Arguments
    # An argument of this name belongs to the server's tool, not to the runtime.
    return create_model(name, __base__=Arguments, **{WAIT: (Any, None)})  # pyright: ignore


def fault_in(schema: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Return what is wrong with the arguments; empty if nothing is wrong, or if the schema is
    invalid."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    try:
        # An empty registry never fetches the address that a schema names.
        checker: Any = Draft202012Validator(checkable(schema), registry=Registry())
        faults: list[Any] = sorted(checker.iter_errors(given), key=lambda e: len(e.path))
    except Exception:  # an invalid schema: the server checks the arguments
        return ""
    if not faults:
        return ""
    first = faults[0]
    where = ".".join(str(part) for part in first.absolute_path if _is_plain(part))
    inside = f" in {where!r}" if where else ""
    if first.validator == "required":
        missing = [one for one in first.validator_value if one not in (first.instance or {})]
        named = ", ".join([repr(one) for one in missing if _is_plain(one)][:MOST_NAMED])
        return f"{named or 'an argument'} is missing{inside}"
    if first.validator == "additionalProperties":
        return f"there is an argument that the tool does not know{inside}"
    return f"{where or 'an argument'!r} does not fit the schema ({first.validator})"


def checkable(schema: Any, depth: int = 0) -> Any:
    """Return the part of a server's schema that is checked here. It accepts whatever the schema
    accepts, and more.

    A regular expression or a reference that a server chose could keep the runtime busy without
    end, so they are left out; the server checks its arguments itself. So is each keyword under
    which a weaker schema would accept less (`not`, `if`).
    """
    if not isinstance(schema, dict):
        return schema if isinstance(schema, bool) else True
    if depth > DEEPEST:
        return True
    given = cast(dict[str, Any], schema)
    made = {key: value for key, value in given.items() if key in _KEPT}
    if isinstance(properties := given.get("properties"), dict):
        named = cast(dict[str, Any], properties)
        made["properties"] = {name: checkable(one, depth + 1) for name, one in named.items()}
    for key in ("items", "additionalProperties"):
        if key in given:
            made[key] = checkable(given[key], depth + 1)
    if "patternProperties" in given:
        made.pop("additionalProperties", None)
    for key in ("prefixItems", "allOf", "anyOf"):
        if isinstance(given.get(key), list):
            made[key] = [checkable(one, depth + 1) for one in given[key]]
    if isinstance(given.get("oneOf"), list):
        # Two schemas may both fit once they are weaker.
        any_of = {"anyOf": [checkable(one, depth + 1) for one in given["oneOf"]]}
        made["allOf"] = [*made.get("allOf", ()), any_of]
    return made


def is_plain_name(name: object) -> bool:
    """Whether a name that a server chose may stand in a sentence of ours."""
    if not isinstance(name, str) or len(name) > 40:
        return False
    return name.isascii() and name.replace("-", "_").isidentifier()


def _is_plain(part: object) -> bool:
    return isinstance(part, int) or is_plain_name(part)
