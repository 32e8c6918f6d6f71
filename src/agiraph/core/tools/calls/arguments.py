"""Arguments: reads what a model gave for a tool's parameters, where its meaning is certain.

Arguments that are valid are never touched. Of invalid ones, a list, an object or a number in a
string is decoded where the schema wants no string, and nothing for an optional argument becomes its
default. If they are not valid then, they stay as the model gave them and are refused.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import orjson
from pydantic import BaseModel, ValidationError

from agiraph.core.domain.text.json_text import repaired

MOST_BYTES = 256 * 1024
"""Bytes of JSON that the arguments of one call may have: they are sent again with every turn."""
KEPT_CHARACTERS = 1_000
"""Characters that are kept of a text in a call that was too long."""
_WRAPPERS = ("arguments", "parameters", "input")
"""Names under which models repeat the object of all arguments."""

_NOTHING = frozenset({"", "null", "None", '""', "''"})
"""Texts that mean nothing where no text is wanted. An empty list is a list."""

Schema = dict[str, Any]


class ReadArguments(NamedTuple):
    """Arguments as a tool takes them, and in plain words what was read differently."""

    arguments: dict[str, Any]
    notes: tuple[str, ...] = ()


def read(form: type[BaseModel], schema: Schema, given: dict[str, Any]) -> ReadArguments:
    """Return the arguments, repaired if that makes invalid ones valid, else as they were given."""
    if is_valid(form, given):
        return ReadArguments(given)
    reader = _Reader(schema.get("$defs", {}))
    found = reader.value(given, schema, "")
    if reader.notes and is_valid(form, found):
        return ReadArguments(found, tuple(reader.notes))
    if (inner := _unwrapped(schema, given)) is not None:
        read_inner = read(form, schema, inner)
        if is_valid(form, read_inner.arguments):
            note = "the arguments were wrapped once more"
            return ReadArguments(read_inner.arguments, (note, *read_inner.notes))
    return ReadArguments(given)


def is_valid(form: type[BaseModel], given: dict[str, Any]) -> bool:
    """Whether the tool takes these arguments as they are."""
    try:
        form.model_validate(given)
    except ValidationError:
        return False
    return True


def count_bytes(given: Any) -> int:
    """Return how many bytes the arguments have as JSON."""
    try:
        return len(orjson.dumps(given))
    except TypeError:  # text that is not UTF-8, or a number of more than 64 bits
        return len(str(given))


def shortened(value: Any) -> Any:
    """Return a value with its long texts cut, and its long lists."""
    if isinstance(value, str):
        return shortened_text(value)
    if isinstance(value, list):
        items = cast(list[Any], value)
        return [shortened(item) for item in items[: KEPT_CHARACTERS // 100]]
    if isinstance(value, dict):
        pairs = list(cast(dict[str, Any], value).items())[: KEPT_CHARACTERS // 100]
        return {shortened_text(key): shortened(item) for key, item in pairs}
    return value


def shortened_text(text: str) -> str:
    """Return a text, or its beginning and how much of it is left out."""
    if len(text) <= KEPT_CHARACTERS:
        return text
    left_out = len(text) - KEPT_CHARACTERS
    return f"{text[:KEPT_CHARACTERS]}… ({left_out:,} more characters were left out)"


def _unwrapped(schema: Schema, given: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments that stand one level too deep; None if they do not."""
    if len(given) != 1 or (name := next(iter(given))) not in _WRAPPERS:
        return None
    inner = given[name]
    if name in schema.get("properties", {}):
        return None
    inner = repaired(inner) if isinstance(inner, str) else inner
    return cast(dict[str, Any], inner) if isinstance(inner, dict) else None


class _Reader:
    """Reads a value by its schema, and notes what it reads differently."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self.notes: list[str] = []
        self._definitions = definitions

    def value(self, value: Any, schema: Schema, where: str) -> Any:
        forms = list(self._forms(schema))
        wanted = {kind for form in forms for kind in _kinds(form)}
        if isinstance(value, str) and wanted and "string" not in wanted:
            value = self._decoded(value, wanted, where)
        if isinstance(value, dict) and (form := _only(forms, "object")) is not None:
            return self._object(cast(dict[str, Any], value), form, where)
        if isinstance(value, list) and (form := _only(forms, "array")) is not None:
            items = form.get("items", {})
            given = cast(list[Any], value)
            return [self.value(v, items, f"{where}[{i}]") for i, v in enumerate(given)]
        return cast(Any, value)

    def _object(self, given: dict[str, Any], form: Schema, where: str) -> dict[str, Any]:
        properties, required = form.get("properties", {}), form.get("required", ())
        found: dict[str, Any] = {}
        for name, value in given.items():
            path = f"{where}.{name}" if where else name
            if name not in properties:
                found[name] = value
            elif name not in required and self._is_nothing(value, properties[name]):
                self.notes.append(f"nothing was given for {path!r}, so its default is used")
            else:
                found[name] = self.value(value, properties[name], path)
        return found

    def _is_nothing(self, value: Any, schema: Schema) -> bool:
        wanted = {kind for form in self._forms(schema) for kind in _kinds(form)}
        if value is None:
            return bool(wanted) and "null" not in wanted
        if not isinstance(value, str) or not wanted or "string" in wanted:
            return False
        return value.strip() in _NOTHING

    def _decoded(self, text: str, wanted: set[str], where: str) -> Any:
        value = repaired(text.strip())
        kind = _kind_of(value)
        is_wanted = kind in wanted or (kind == "integer" and "number" in wanted)
        if value is not None and is_wanted:
            self.notes.append(f"{where or 'it'!r} was {_NAMES[kind]} inside of a string")
            return value
        return text

    def _forms(self, schema: Schema) -> Iterable[Schema]:
        """Yield the schemas that a value may have, without references and choices."""
        if "$ref" in schema:
            schema = self._definitions.get(schema["$ref"].rpartition("/")[2], {})
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices is None:
            yield schema
        for choice in choices or ():
            yield from self._forms(choice)


_NAMES = {
    "object": "an object",
    "array": "a list",
    "number": "a number",
    "integer": "a number",
    "boolean": "a truth value",
}


def _kinds(form: Schema) -> Iterable[str]:
    kind = form.get("type")
    if isinstance(kind, str):
        return (kind,)
    if isinstance(kind, list):
        return cast(list[str], kind)
    named = form.get("enum", [form["const"]] if "const" in form else [])
    # A schema without any of these takes everything, a string too.
    return {_kind_of(value) for value in named} or {"string", "null"}


def _kind_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"


def _only(forms: list[Schema], kind: str) -> Schema | None:
    """Return the one schema of this kind; None if there are several to choose from, or none."""
    found = [form for form in forms if form.get("type") == kind]
    return found[0] if len(found) == 1 else None
