"""JSON text: reads the JSON that models write, and repairs only what can mean one thing.

Repaired are commas before a closing bracket, line breaks and tabs inside of strings, and values in
Python's spelling. Everything else is left as it was written.
"""

import ast
import json
import re
from collections.abc import Iterable
from math import isfinite
from typing import Any, cast

import orjson

from agiraph.late_patterns import late

MAX_DEPTH = 64
"""JSON that is nested deeper would exhaust Python's stack when it is stored or shown."""
_LONGEST_PYTHON = 256 * 1024
"""Characters of a Python value that are read; the parser's memory grows much faster than them."""
MOST_OBJECTS = 64
"""Objects in a row that are read; more come from a model that repeats itself."""
_NOTHING = frozenset({"", "{}", "null", "[]", '""', "''", '" "', "None", "[{}]"})

# The possessive quantifiers (`+` behind a quantifier) forbid backtracking.
_STRING = r'"(?:[^"\\]++|\\[^\x00-\x1f])*+"?'
_JSON_STRING = late(_STRING)
_CONTROL = late(r"[\x00-\x1f]")
_CONTROL_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)}
_STRING_OR_LAST_COMMA = late(rf"({_STRING})|,(?=\s*+[}}\]])")
_ODD_ESCAPE = late(r"""\\(?:\\|["'nrtbf]|u[0-9a-fA-F]{4})|(\\)""")
"""Group 1: a backslash that JSON and Python read differently, or only one of them reads."""


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
_BLANKS = late(r"\s*+")


_PAIR, _LONE = late(r"[\ud800-\udbff][\udc00-\udfff]"), late(r"[\ud800-\udfff]")
"""Surrogates: two that encode a character, and any that remain."""
_ESCAPE = late(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""An escape in JSON; two for one character count as one."""


def without_surrogates(text: str) -> str:
    """Return the text with two surrogates as the character that they encode, and each lone one,
    which UTF-8 cannot encode, as U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Not by `decode` with "replace", which raises and catches an error for each of them.
        return _LONE.sub("\N{REPLACEMENT CHARACTER}", _PAIR.sub(_joined, text))
    return text


def _joined(pair: re.Match[str]) -> str:
    """Return the character that two surrogates encode."""
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


def parsed(text: str) -> Any:
    """Return the JSON value of a text, with half a character in it, which may be written as an
    escape, as U+FFFD. Raise `ValueError` if it is no JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        whole = _ESCAPE.sub(_without_half, without_surrogates(text))
        if whole == text:
            raise
    return orjson.loads(whole)


def _without_half(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["half"] else escape[0]


def clean(value: Any) -> Any:
    """Return a JSON value whose texts are `without_surrogates`; the value itself if they are."""
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:  # half a character, or a number of more than 64 bits
        return _clean(value)
    return value


def _clean(value: Any) -> Any:
    match value:
        case str():
            return without_surrogates(value)
        case list():
            return [_clean(item) for item in cast(list[Any], value)]
        case dict():
            return {_clean(k): _clean(item) for k, item in cast(dict[Any, Any], value).items()}
        case _:
            return value


def is_nothing(text: str) -> bool:
    """Whether the text is a spelling of no arguments at all."""
    return text.strip() in _NOTHING


def repaired(text: str) -> Any:
    """Return the JSON value of a text, repaired where nothing is guessed; None if it has none.

    A repaired value is an object or a list, or a string that contains one.
    """
    for spelling in (text, _with_escapes(text), _without_last_commas(text)):
        if spelling is not None and (value := _loaded(spelling)) is not None:
            return value
    return _python_value(text)


def object_in(text: str) -> dict[str, Any] | None:
    """Return the object that a text holds, also if it was encoded twice; None if it holds none."""
    value = repaired(text)
    if isinstance(value, str):
        value = _loaded(value)
    return _kept(value) if isinstance(value, dict) else None


def objects_in_a_row(text: str) -> list[dict[str, Any]]:
    """Return the objects of a text that consists of two or more of them; identical ones once."""
    found: list[dict[str, Any]] = []
    text, at = text.strip(), 0
    while at < len(text):
        value, end = value_at(text, at)
        if not isinstance(value, dict):
            return []
        found.append(cast(dict[str, Any], value))
        at = _BLANKS.match(text, end).end()  # pyright: ignore[reportOptionalMemberAccess]
    if not 1 < len(found) <= MOST_OBJECTS:
        return []
    return [one for index, one in enumerate(found) if one not in found[:index]]


def value_at(text: str, at: int) -> tuple[Any, int]:
    """Return the JSON value that begins at this place, and where it ends; None if none does."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at
    kept = _kept(value)
    return (None, at) if kept is None else (kept, end)


def strict_object(text: str) -> dict[str, Any] | None:
    """Return the object that a text is, with line breaks and tabs allowed in its strings."""
    value = _loaded(text)
    if value is None and (escaped := _with_escapes(text)) is not None:
        value = _loaded(escaped)
    return cast(dict[str, Any], value) if _is_shallow_object(value) else None


def _is_shallow_object(value: Any) -> bool:
    return isinstance(value, dict) and not is_too_deep(cast(Any, value))


def is_too_deep(value: Any) -> bool:
    """Whether a value is nested deeper than other code, which recurses, can take."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for whole in level:
            parts: Iterable[Any] = ()
            if isinstance(whole, dict):
                parts = cast(dict[str, Any], whole).values()
            elif isinstance(whole, list):
                parts = cast(list[Any], whole)
            below += [part for part in parts if isinstance(part, (dict, list))]
        if not below:
            return False
        level = below
    return True


def _loaded(text: str) -> Any:
    try:
        return parsed(text)
    except ValueError:
        return None


def _kept(value: Any) -> Any:
    """Return the value as a row can store it; None if none can."""
    if is_too_deep(value):
        return None
    try:
        return orjson.loads(orjson.dumps(value))
    except (TypeError, ValueError):  # a lone surrogate, or a number of more than 64 bits
        return None


def _with_escapes(text: str) -> str | None:
    """Return the text with control characters in its strings escaped; None if it has none."""
    if not _CONTROL.search(text):
        return None
    return _JSON_STRING.sub(lambda found: found[0].translate(_CONTROL_ESCAPES), text)


def _without_last_commas(text: str) -> str:
    """Return the text, with escaped control characters, without commas that nothing follows."""
    text = _with_escapes(text) or text
    return _STRING_OR_LAST_COMMA.sub(lambda found: found[1] or "", text)


def _python_value(text: str) -> Any:
    """Return the value of a text that is a dict or a list in Python's spelling; None for others."""
    text = text.strip()
    if text[:1] not in ("{", "[") or len(text) > _LONGEST_PYTHON:
        return None
    if any(found[1] for found in _ODD_ESCAPE.finditer(text)):
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    # A tuple, a set or bytes have no one meaning in JSON; orjson refuses all but the tuple.
    if is_too_deep(value) or not _is_json(value):
        return None
    return _kept(value)


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        found = cast(dict[Any, Any], value)
        return all(isinstance(k, str) and _is_json(v) for k, v in found.items())
    if isinstance(value, list):
        return all(map(_is_json, cast(list[Any], value)))
    if isinstance(value, float):
        return isfinite(value)
    return value is None or isinstance(value, (str, int))
