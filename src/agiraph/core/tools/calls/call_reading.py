"""Call reading: turns the calls of a reply into calls of the tools that there are.

A call is read once, before its reply is written down. So the thread holds the tool's own name and
arguments that every vendor accepts, and the bytes of a turn never change afterwards.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, cast

import orjson
from pydantic import ValidationError

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.text.json_text import (
    MAX_DEPTH,
    is_nothing,
    is_too_deep,
    object_in,
    objects_in_a_row,
)
from agiraph.core.domain.value import value
from agiraph.core.tools.base import CUT_OFF, WAIT, Tool
from agiraph.core.tools.calls import arguments, on_demand
from agiraph.core.tools.calls.schemas import whole_schema
from agiraph.core.tools.calls.synonyms import ELSEWHERE, SYNONYMS, folded

MAX_NAME_CHARACTERS = 128
MOST_NEAR = 3
"""Tools that are named instead of one that does not exist."""
_PARALLEL = frozenset(
    map(folded, ("multi_tool_use.parallel", "multi_tool_use_parallel", "multi_tool_use"))
)
"""Folded names under which models put several calls into one."""
_MOST_WRAPPERS = 2
"""Wrappers around a call that are taken off; a model that nests more is out of control."""
_IN_FRONT = re.compile(
    r"^(?:[\w ]*\bto=)?(?:(?:functions?|tools?|default_api|namespace)[.:/])*+", re.IGNORECASE
)
_MARK = re.compile(r"<\||<\uff5c|(?:(?<!\s)\s++)?[({].*$", re.DOTALL)
_COUNTER = re.compile(r":\d+$")
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
    if tool is None or call.malformed is not None or call.name == on_demand.call_tool.spec.name:
        return False
    try:
        tool.arguments.model_validate(call.arguments)
        size = len(orjson.dumps(call.arguments))
    except (ValidationError, TypeError):
        return False
    return size <= arguments.MOST_BYTES and not is_too_deep(call.arguments)


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
        is_fit = call.malformed is None and arguments.is_valid(
            tools[name].arguments, read.call.arguments
        )
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
        if arguments.is_valid(tool.arguments, read.call.arguments):
            return _also(read, f"it was written as {call.name[:MAX_NAME_CHARACTERS]!r}")
    return None


def _with_arguments(call: ToolCall, tool: Tool, notes: Sequence[str]) -> ReadCall:
    if call.malformed is not None:
        return ReadCall(call=call, reading="; ".join(notes))
    given, _ = tool.without_wait(call.arguments)
    read = arguments.read(tool.arguments, whole_schema(tool.arguments), given)
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
    size = arguments.count_bytes(call.arguments)
    if size <= arguments.MOST_BYTES:
        return read
    refusal = _TOO_LONG.format(name=call.name, size=size, most=arguments.MOST_BYTES)
    kept = arguments.shortened(call.arguments)
    return replace(read, call=replace(call, arguments=kept, refusal=call.refusal or refusal))


def _with_short_text(read: ReadCall, tools: Mapping[str, Tool]) -> ReadCall:
    """Return the call; of a long text in place of its arguments, only the beginning is kept."""
    call = read.call
    text = call.malformed or ""
    if len(text) <= arguments.KEPT_CHARACTERS:
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
    kept = arguments.shortened_text(text)
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
