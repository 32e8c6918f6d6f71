"""Written call: finds a tool call that a model wrote as text instead of making it.

These are the forms that models were trained on and that a server failed to parse, or that a model
copied from the history of another vendor. Nothing in them is ever called.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

import orjson

from agiraph.core.domain.chat import ToolSpec
from agiraph.core.tools.calls.synonyms import SYNONYMS, folded

UNKNOWN = "unknown"
"""The name of a written call whose tool cannot be told."""

_BAR = "\uff5c"
"""The wide bar in DeepSeek's marks."""
_MARKS = re.compile(
    r"<(?:\|)?tool_calls?(?:\|)?>|</?tool_call>|<function=[\w.-]+|<function_calls?>|"
    rf"<(?:antml:)?invoke\b|\[TOOL_CALLS?\]|<call_record\b|<{_BAR}tool▁calls?▁begin{_BAR}>|"
    r"<\|tool_calls?(?:_section)?_begin\|>|<\|python_tag\|>|<\|channel\|>commentary to=|"
    r"\bto=functions\.\w|```tool_code|```tool_call|<tool_use>|<call [a-z0-9]{8} ",
    re.IGNORECASE,
)
_NAMES = (
    re.compile(r"<function=[\"']?([\w.-]+)"),
    re.compile(r"<(?:antml:)?invoke\s+name\s*=\s*[\"']?([\w.-]+)"),
    re.compile(r"\"(?:name|tool|tool_name|function|action)\"\s*:\s*\"([\w.-]+)\""),
    re.compile(r"\bto=(?:functions\.)?([\w.-]+)"),
    re.compile(r"<call [a-z0-9]{8} ([\w.-]+)"),
    re.compile(r"<call_record\b[^>\n]{0,200}\bname\s*=\s*[\"']?([\w.-]+)"),
    re.compile(r"\[TOOL_CALLS?\]\s*([\w.-]+)"),
    re.compile(r"<\|tool_call_begin\|>\s*([\w.-]+)"),
    re.compile(rf"<{_BAR}tool▁call▁begin{_BAR}>(?:function<{_BAR}tool▁sep{_BAR}>)?([\w.-]+)"),
    re.compile(r"<tool_call>\s*([\w.-]+)\s*(?:\n|<arg_key>)"),
    re.compile(r"(?<![\w.-])default_api\.([\w.-]++)\("),
    re.compile(r"<\|python_tag\|>\s*([\w-]+)"),
)
_FENCED = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_TAG = re.compile(r"^[ \t]*+<([a-z]\w*)>", re.MULTILINE)
_KEYS = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = {"arguments", "parameters", "input", "args"}
_EXAMINED = 20_000
"""Characters of a reply that are examined."""


def written_call(text: str, tools: Collection[str]) -> str | None:
    """Return the name of the tool that the text pretends to call; None if it holds no call.

    JSON counts only if it names one of these tools; the other forms have no other meaning.
    """
    text = text[:_EXAMINED]
    if (mark := _MARKS.search(text)) is not None:
        return _named(text[mark.start() :], tools) or UNKNOWN
    for name in _TAG.findall(text):
        if name in tools and f"</{name}>" in text:
            return name
    for block in (*_FENCED.findall(text), text):
        if (name := _json_name(block.strip(), tools)) is not None:
            return name
    return None


def _named(text: str, tools: Collection[str]) -> str | None:
    found = [match[1].removeprefix("functions.") for form in _NAMES if (match := form.search(text))]
    known = (own for name in found if (own := _own_name(name, tools)) is not None)
    return next(known, found[0] if found else None)


def _own_name(name: str, tools: Collection[str]) -> str | None:
    """Return the tool that a name means, also if models learned the name elsewhere."""
    if name in tools:
        return name
    meant = {folded(name), *(folded(s.tool) for s in SYNONYMS.get(folded(name), ()))}
    return next((tool for tool in tools if folded(tool) in meant), None)


def _json_name(text: str, tools: Collection[str]) -> str | None:
    """Return the tool that a JSON object, or a list of them, names."""
    if not text.startswith(("{", "[")):
        return None
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        # Cut off, or with raw line breaks: its first lines still tell what it is.
        return next(
            (n for form in _NAMES if (m := form.search(text)) and (n := m[1]) in tools), None
        )
    if isinstance(value, list):
        value = next(iter(cast(list[Any], value)), None)
    if not isinstance(value, dict):
        return None
    known = cast(dict[str, Any], value)
    if isinstance(inner := known.get("function"), dict):
        known = cast(dict[str, Any], inner)
    given = [name for key in _KEYS if isinstance(name := known.get(key), str)]
    if known.keys() & _ARGUMENTS:  # nothing but a call has both
        given = [_own_name(name, tools) or name for name in given]
    return next((name for name in given if name in tools), None)


def how_to_call(name: str, specs: Mapping[str, ToolSpec]) -> str:
    """Return how the tool is called, with its arguments as its schema has them."""
    spec = specs.get(name)
    if spec is None:
        return f"Your tools: {', '.join(specs)}."
    properties: dict[str, Any] = spec.schema.get("properties", {})
    required = spec.schema.get("required", [])
    shown = [
        f"{argument} ({_type(form)}{'' if argument in required else ', optional'})"
        for argument, form in properties.items()
    ]
    return f"{name} takes: {', '.join(shown) or 'nothing'}."


def _type(form: dict[str, Any]) -> str:
    choices = [str(part.get("type", "any")) for part in form.get("anyOf", ())]
    return str(form.get("type") or " or ".join(c for c in choices if c != "null") or "any")
