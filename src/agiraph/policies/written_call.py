"""Written call: finds a tool call that a model wrote as text instead of making it.

These are the forms that models were trained on and that a server failed to parse, or that a model
copied from the history of another vendor. Nothing in them is ever called.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

import orjson

from agiraph.domain.chat import ToolSpec

UNKNOWN = "unknown"
"""The name of a written call whose tool cannot be told."""

_MARKS = re.compile(
    r"<(?:\|)?tool_calls?(?:\|)?>|</?tool_call>|<function=[\w.-]+|<function_calls?>|"
    r"<(?:antml:)?invoke\b|\[TOOL_CALLS?\]|<call_record\b|<\uff5ctool▁calls?▁begin\uff5c>|"
    r"<\|python_tag\|>|<\|channel\|>commentary to=|<call [a-z0-9]{8} ",
    re.IGNORECASE,
)
_NAMES = (
    re.compile(r"<function=[\"']?([\w.-]+)"),
    re.compile(r"<(?:antml:)?invoke\s+name\s*=\s*[\"']?([\w.-]+)"),
    re.compile(r"\"(?:name|tool|tool_name|function|action)\"\s*:\s*\"([\w.-]+)\""),
    re.compile(r"commentary to=(?:functions\.)?([\w.-]+)"),
    re.compile(r"<call [a-z0-9]{8} ([\w.-]+)"),
    re.compile(r"\[TOOL_CALLS?\]\s*([\w.-]+)"),
)
_FENCED = re.compile(r"^[ \t]*```[\w-]*[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_KEYS = ("name", "tool", "tool_name", "function", "action")
_EXAMINED = 20_000
"""Characters of a reply that are examined."""


def written_call(text: str, tools: Collection[str]) -> str | None:
    """Return the name of the tool that the text pretends to call; None if it holds no call.

    JSON counts only if it names one of these tools; the other forms have no other meaning.
    """
    text = text[:_EXAMINED]
    if (mark := _MARKS.search(text)) is not None:
        return _named(text[mark.start() :], tools) or UNKNOWN
    for block in (*_FENCED.findall(text), text):
        if (name := _json_name(block.strip(), tools)) is not None:
            return name
    return None


def _named(text: str, tools: Collection[str]) -> str | None:
    found = [match[1].removeprefix("functions.") for form in _NAMES if (match := form.search(text))]
    return next((name for name in found if name in tools), found[0] if found else None)


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
    given = [known.get(key) for key in _KEYS]
    return next((name for name in given if isinstance(name, str) and name in tools), None)


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
