"""Results: turns what a person's function returned or raised into text for a model."""

import dataclasses
from typing import Any, cast

import orjson
from pydantic import BaseModel

from agiraph.core.domain.errors import Refused
from agiraph.core.tools.base import NO_TEXT
from agiraph.redaction import redact

MOST_BYTES = 256 * 1024
"""Bytes of a result that are kept; the runtime shows a model the beginning of them and keeps the
rest in a file."""
LONGEST_ERROR = 2000
NOTHING = "(It returned nothing.)"


def as_text(name: str, value: Any) -> str:
    """Return a result as text, without secrets and cut to a bound.

    Secrets are replaced before the cut, which could leave the beginning of one. Raise `Refused` for
    a value that is neither text nor JSON.
    """
    match value:
        case None:
            return NOTHING
        case str():
            text, size = value, f"{len(value):,} characters"
        case bytes() | bytearray():
            text, size = _of_bytes(name, bytes(value)), f"{len(value):,} bytes"
        case _:
            data = _as_json(name, value)
            text, size = data.decode(), f"{len(data):,} bytes of JSON"
    text = redact(text.encode(errors="replace").decode().replace("\0", NO_TEXT))
    kept = text[:MOST_BYTES]
    if not isinstance(value, str):
        # The cut may go through a character.
        kept = kept.encode()[:MOST_BYTES].decode(errors="ignore")
    return f"{kept}\n(Cut here: {name} returned {size}.)" if kept != text else text or NOTHING


def _of_bytes(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused(
            f"{name} returned {len(data):,} bytes that are not text. A tool returns text or JSON."
        ) from None


def _as_json(name: str, value: Any) -> bytes:
    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2
    try:
        return orjson.dumps(value, default=_plain, option=options)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(
            f"{name} returned a {type(value).__name__}, which is neither text nor JSON ({error})."
        ) from error


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case set() | frozenset():
            return list(cast(set[Any], value))
        case bytes() | bytearray():
            return bytes(value).decode(errors="replace")
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.asdict(value)
        case _:
            raise TypeError(f"no form for {type(value).__name__}")


def error_text(error: BaseException) -> str:
    """Return the type and message of an exception, cut to a length and without secrets."""
    try:
        said = str(error)
    except Exception:  # an exception's own __str__ is foreign code
        said = ""
    said = said.encode(errors="replace").decode().replace("\0", NO_TEXT)
    said = redact(said)[:LONGEST_ERROR]
    kind = type(error).__name__
    return redact(f"{kind}: {said}" if said.strip() else kind)
