"""Event streams: splits a response body into server-sent events, and reads JSON objects."""

import json
import re
from typing import Any

import orjson

from agiraph.core.domain.errors import ModelGarbled, ModelUnavailable
from agiraph.models.http.client import Response, read_up_to

# Far more than any model may write in one reply. An endless stream fails here instead of filling
# the memory of the process that runs all agents.
MAX_REPLY_BYTES = 32 * 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NOT_STRICT_JSON = re.compile(rb"NaN|Infinity|[eE]\+?\d{3}|\\u[dD][89a-fA-F]")
"""Numbers and half characters that orjson refuses and Python's own parser accepts."""


class EventStreamParser:
    """Splits a stream of server-sent events into the payloads of its `data:` lines."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        """The pieces of the line that has not ended; joined once, when its end arrives."""
        self._is_first = True
        self._total_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the payloads that are complete now. An empty chunk is the end of the stream."""
        if not chunk:
            return self._last()
        self._total_bytes += len(chunk)
        if self._total_bytes > MAX_REPLY_BYTES:
            raise ModelGarbled(f"The response is longer than {MAX_REPLY_BYTES // 2**20} MiB.")
        # Other lines contain nothing that the JSON does not: Anthropic's `event:` names are
        # repeated in it, and comments such as OpenRouter's ": OPENROUTER PROCESSING" only keep the
        # connection open. `strip` removes the "\r" of servers that end lines with "\r\n".
        if b"\n" not in chunk:
            self._rest.append(chunk)
            return []
        *lines, rest = b"".join([*self._rest, chunk]).split(b"\n")
        self._rest = [rest]
        if self._is_first:
            # Some servers begin with a byte order mark, which would hide the first event. It may
            # arrive in pieces, so the whole line is needed.
            lines[0], self._is_first = lines[0].removeprefix(BYTE_ORDER_MARK), False
        # Some servers fail in the middle, and write an error without the field.
        return [
            (line[5:] if line.startswith(b"data:") else line).strip()
            for line in lines
            if line.startswith((b"data:", b'{"error"'))
        ]

    def _last(self) -> list[bytes]:
        rest = b"".join(self._rest)
        if self._is_first:
            rest = rest.removeprefix(BYTE_ORDER_MARK)
        if rest.startswith(b"data:"):
            last = rest[5:].strip()
            # Some servers close the connection without the empty line that ends the last event.
            # Half an event means that the connection broke, which a retry may cure.
            if not _is_complete(last):
                raise ModelUnavailable(CUT_OFF)
            return [last]
        return []


CUT_OFF = "The response was cut off before its end."


def _is_complete(payload: bytes) -> bool:
    """Whether a last event without a newline behind it has arrived as a whole."""
    try:
        _parse_json(payload)
    except ValueError:
        return payload == b"[DONE]"
    return True


async def read_object(response: Response) -> dict[str, Any]:
    """Return the JSON object of a response that is not a stream."""
    raw = await read_up_to(response, MAX_REPLY_BYTES + 1)
    if len(raw) > MAX_REPLY_BYTES:
        raise ModelGarbled(f"The response is longer than {MAX_REPLY_BYTES // 2**20} MiB.")
    return parse_object(raw)


def parse_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in these bytes, or raise `ModelGarbled`."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        body = _object_of_others(raw)
    if not isinstance(body, dict):
        raise ModelGarbled(f"The model server's answer is not a JSON object: {raw[:80]!r}")
    return body  # pyright: ignore[reportUnknownVariableType]


def _object_of_others(raw: bytes) -> Any:
    try:
        return _parse_json(raw)
    except ValueError as error:
        raise ModelGarbled(f"The model server's answer is not JSON: {raw[:80]!r}") from error


def _parse_json(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        if _NOT_STRICT_JSON.search(raw) is None:
            raise
    try:
        # Servers written in Python send NaN, and those that cut a text into pieces of UTF-16 send
        # half a character in each of two pieces; the reply is still good.
        return json.loads(raw)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
