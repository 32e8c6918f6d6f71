"""Call reading: turns the calls of a reply into calls of the tools that there are.

A call is read once, before its reply is written down. So the thread holds the tool's own name and
arguments that every vendor accepts, and the bytes of a turn never change afterwards.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NamedTuple, cast

import orjson
from pydantic import BaseModel, ValidationError

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.text.json_text import (
    MAX_DEPTH,
    is_nothing,
    is_too_deep,
    object_in,
    objects_in_a_row,
    repaired,
)
from agiraph.core.domain.value import value
from agiraph.core.tools.base import CUT_OFF, WAIT, Tool
from agiraph.core.tools.calls import on_demand
from agiraph.core.tools.calls.schemas import whole_schema
from agiraph.core.tools.calls.synonyms import ELSEWHERE, SYNONYMS, folded
from agiraph.late_patterns import late

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
    """Arguments as a tool takes them, and in plain words what was read_arguments differently."""

    arguments: dict[str, Any]
    notes: tuple[str, ...] = ()


def read_arguments(form: type[BaseModel], schema: Schema, given: dict[str, Any]) -> ReadArguments:
    """Return the arguments, repaired if that makes invalid ones valid, else as they were given."""
    if is_valid(form, given):
        return ReadArguments(given)
    reader = _Reader(schema.get("$defs", {}))
    found = reader.value(given, schema, "")
    if reader.notes and is_valid(form, found):
        return ReadArguments(found, tuple(reader.notes))
    if (inner := _unwrapped(schema, given)) is not None:
        read_inner = read_arguments(form, schema, inner)
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
        for name, each in given.items():
            path = f"{where}.{name}" if where else name
            if name not in properties:
                found[name] = each
            elif name not in required and self._is_nothing(each, properties[name]):
                self.notes.append(f"nothing was given for {path!r}, so its default is used")
            else:
                found[name] = self.value(each, properties[name], path)
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


MAX_NAME_CHARACTERS = 128
MOST_NEAR = 3
"""Tools that are named instead of one that does not exist."""
_PARALLEL = frozenset(
    map(folded, ("multi_tool_use.parallel", "multi_tool_use_parallel", "multi_tool_use"))
)
"""Folded names under which models put several calls into one."""
_MOST_WRAPPERS = 2
"""Wrappers around a call that are taken off; a model that nests more is out of control."""
_IN_FRONT = late(
    r"^(?:[\w ]*\bto=)?(?:(?:functions?|tools?|default_api|namespace)[.:/])*+", re.IGNORECASE
)
_MARK = late(r"<\||<\uff5c|(?:(?<!\s)\s++)?[({].*$", re.DOTALL)
_COUNTER = late(r":\d+$")
_DIRECTLY = (
    "Not called: {name} is not a tool. Call the tools directly, each in a call of its own; one "
    "reply may hold several calls."
)
_TOO_LONG = (
    "{name}: not called, because its arguments have {size:,} bytes, and {most:,} is the most. Only "
    "their beginning was kept. Write it in smaller pieces, each in a call of its own."
)

_TOO_DEEP = (
    "{name}: not called, because its arguments are nested deeper than {most} levels. Write them "
    "with fewer levels."
)


@value
class ReadCall:
    """A call of a reply, and in plain words how it was read if it was written differently."""

    call: ToolCall
    reading: str = ""


def read_calls(
    calls: Iterable[ToolCall], tools: Mapping[str, Tool], *, is_cut: bool = False
) -> list[ReadCall]:
    """Return the calls as calls of these tools; one that cannot be read stays as it is.

    `is_cut`: the reply broke off, so that empty arguments may be the beginning of others.
    """
    found: list[ReadCall] = []
    for call in calls:
        if _is_plain(call, tools):
            found.append(ReadCall(call=call))
        else:
            found += _read(call, tools, is_cut=is_cut)
    return found


def _is_plain(call: ToolCall, tools: Mapping[str, Tool]) -> bool:
    """Whether the call is one of a tool in every respect, as nearly all calls are."""
    tool = tools.get(call.name)
    if tool is None or call.malformed is not None or call.name == on_demand.call_tool.name:
        return False
    try:
        tool.form.validated(call.arguments)
        size = len(orjson.dumps(call.arguments))
    except (ValidationError, TypeError):
        return False
    return size <= MOST_BYTES and not is_too_deep(call.arguments)


def no_such_tool(name: str, tools: Mapping[str, Tool]) -> str:
    """Return the answer to a call of a tool that does not exist."""
    text = f"There is no tool called {name[:MAX_NAME_CHARACTERS]!r}."
    plain = folded(_plain(name))
    near = [(s.tool, "") for s in SYNONYMS.get(plain, ())] or ELSEWHERE.get(plain, ())
    near = [(tool, remark) for tool, remark in near if tool in tools]
    if near:
        # Where the model means one tool, one line is enough.
        used = [(f"Use {t}, {r}." if r else f"Use {t}.", tools[t].usage()) for t, r in near]
        return " ".join([text, *(part for pair in used[:MOST_NEAR] for part in pair)])
    close = get_close_matches(_plain(name), tools, n=1, cutoff=0.75)
    usage = " ".join(f"Nearest to it is {one}. {tools[one].usage()}" for one in close)
    known = ", ".join(tools) or "none"
    return " ".join(filter(None, (text, usage, f"Your tools: {known}.")))


def _read(
    call: ToolCall, tools: Mapping[str, Tool], *, is_cut: bool, depth: int = 0
) -> list[ReadCall]:
    if is_too_deep(call.arguments):
        refusal = _TOO_DEEP.format(name=call.name[:MAX_NAME_CHARACTERS], most=MAX_DEPTH)
        return [ReadCall(call=replace(call, arguments={}, refusal=refusal))]
    if call.name not in tools and folded(_plain(call.name)) in _PARALLEL:
        return _taken_apart(call, tools, is_cut=is_cut, depth=depth)
    found: list[ReadCall] = []
    for one, notes in _objects(call, is_cut=is_cut):
        own = replace(one, name=_own_name(one.name, tools) or one.name)
        inner = on_demand.unwrap(own, tools) if depth < _MOST_WRAPPERS else None
        if inner is not None:
            found += _read(inner, tools, is_cut=is_cut, depth=depth + 1)
        else:
            found.append(_bounded(_named(one, tools, notes), tools))
    return found


def _plain(name: str) -> str:
    """Return a name without the marks of a model's own format before and behind it."""
    name = _MARK.split(name.strip(), maxsplit=1)[0]
    name = _IN_FRONT.sub("", name)
    return _COUNTER.sub("", name).strip("\"'`*. \t\r\n")


def _objects(call: ToolCall, *, is_cut: bool) -> list[tuple[ToolCall, list[str]]]:
    """Return the call with its arguments as an object; several if their objects run together."""
    text = call.malformed
    if text is None:
        return [(call, [])]
    if not text or (is_cut and not text.strip()):  # it broke off before its arguments
        return [(call, [])]
    if is_nothing(text):
        return [(_given(call, {}), [f"{text!r} was read as no arguments"])]
    if (whole := object_in(text)) is not None:
        return [(_given(call, whole), ["the arguments were repaired to a JSON object"])]
    if apart := objects_in_a_row(text):
        note = f"{len(apart)} calls ran together" if len(apart) > 1 else "the same was given twice"
        return [(_given(call, one), [note]) for one in apart]
    return [(call, [])]


def _given(call: ToolCall, given: dict[str, Any]) -> ToolCall:
    return replace(call, arguments=given, malformed=None)


def _named(call: ToolCall, tools: Mapping[str, Tool], notes: list[str]) -> ReadCall:
    """Return the call under the name of a tool, with its arguments as that tool takes them."""
    if (name := _own_name(call.name, tools)) is not None:
        read = _with_arguments(replace(call, name=name), tools[name], notes)
        if name == call.name:
            return read
        is_fit = call.malformed is None and is_valid(tools[name].arguments, read.call.arguments)
        if is_fit or (other := _by_synonym(call, tools, notes)) is None:
            return _also(read, f"it was written as {call.name[:MAX_NAME_CHARACTERS]!r}")
        return other
    other = _by_synonym(call, tools, notes)
    return other or ReadCall(call=replace(call, name=call.name[:MAX_NAME_CHARACTERS]))


def _own_name(name: str, tools: Mapping[str, Tool]) -> str | None:
    """Return the one tool whose name this is, without regard to case and to marks around it."""
    if name in tools:
        return name
    plain = _plain(name)
    if plain in tools:
        return plain
    found = [tool for tool in tools if folded(tool) == folded(plain)]
    return found[0] if len(found) == 1 else None


def _by_synonym(call: ToolCall, tools: Mapping[str, Tool], notes: list[str]) -> ReadCall | None:
    """Return the call as one of a tool that models know under this name, if its arguments fit."""
    if call.malformed is not None:
        return None
    for synonym in SYNONYMS.get(folded(_plain(call.name)), ()):
        renamed = synonym.rename(call.arguments) if synonym.tool in tools else None
        if renamed is None:
            continue
        tool = tools[synonym.tool]
        own = replace(call, name=tool.name, arguments=renamed)
        read = _with_arguments(own, tool, notes)
        if is_valid(tool.arguments, read.call.arguments):
            return _also(read, f"it was written as {call.name[:MAX_NAME_CHARACTERS]!r}")
    return None


def _with_arguments(call: ToolCall, tool: Tool, notes: Sequence[str]) -> ReadCall:
    if call.malformed is not None:
        return ReadCall(call=call, reading="; ".join(notes))
    given, _ = tool.without_wait(call.arguments)
    read = read_arguments(tool.arguments, whole_schema(tool.arguments), given)
    if read.notes:
        beside = {WAIT: call.arguments[WAIT]} if given is not call.arguments else {}
        call = replace(call, arguments=read.arguments | beside)
    return ReadCall(call=call, reading="; ".join((*notes, *read.notes)))


def _also(read: ReadCall, note: str) -> ReadCall:
    return replace(read, reading="; ".join(filter(None, (note, read.reading))))


def _bounded(read: ReadCall, tools: Mapping[str, Tool]) -> ReadCall:
    """Return the call; one that is too long is refused, and only its beginning is kept."""
    call = read.call
    if call.malformed is not None:
        return _with_short_text(read, tools)
    size = count_bytes(call.arguments)
    if size <= MOST_BYTES:
        return read
    refusal = _TOO_LONG.format(name=call.name, size=size, most=MOST_BYTES)
    kept = shortened(call.arguments)
    return replace(read, call=replace(call, arguments=kept, refusal=call.refusal or refusal))


def _with_short_text(read: ReadCall, tools: Mapping[str, Tool]) -> ReadCall:
    """Return the call; of a long text in place of its arguments, only the beginning is kept."""
    call = read.call
    text = call.malformed or ""
    if len(text) <= KEPT_CHARACTERS:
        return read
    # The refusal is fixed here: the beginning alone may look as if it broke off, or as if not.
    if call.refusal is not None:
        refusal = call.refusal
    elif call.is_cut_off:
        refusal = f"{call.name}: {CUT_OFF}"
    elif call.name in tools:
        refusal = tools[call.name].not_an_object(text)
    else:
        refusal = no_such_tool(call.name, tools)
    kept = shortened_text(text)
    return replace(read, call=replace(call, malformed=kept, refusal=refusal))


def _refused(call: ToolCall, tools: Mapping[str, Tool]) -> ReadCall:
    refusal = _DIRECTLY.format(name=call.name[:MAX_NAME_CHARACTERS])
    return _bounded(ReadCall(call=replace(call, refusal=refusal)), tools)


def _taken_apart(
    call: ToolCall, tools: Mapping[str, Tool], *, is_cut: bool, depth: int
) -> list[ReadCall]:
    """Return the calls that a model put into one; the call with a refusal if it holds no calls."""
    given = call.arguments if call.malformed is None else object_in(call.malformed) or {}
    uses = given.get("tool_uses")
    if not isinstance(uses, list) or not uses or depth == _MOST_WRAPPERS:
        return [_refused(call, tools)]
    found: list[ReadCall] = []
    for use in cast(list[Any], uses):
        inner = _inner_call(call, use)
        if inner is None:
            return [_refused(call, tools)]
        found += _read(inner, tools, is_cut=is_cut, depth=_MOST_WRAPPERS - 1)
    return [_also(read, f"it was part of {call.name[:MAX_NAME_CHARACTERS]!r}") for read in found]


def _inner_call(call: ToolCall, use: Any) -> ToolCall | None:
    if not isinstance(use, dict):
        return None
    known = cast(dict[str, Any], use)
    name, given = known.get("recipient_name"), known.get("parameters", {})
    if not isinstance(name, str) or not name:
        return None
    if isinstance(given, dict):
        return ToolCall(id=call.id, name=name, arguments=cast(dict[str, Any], given))
    return ToolCall(id=call.id, name=name, malformed=given if isinstance(given, str) else "null")
