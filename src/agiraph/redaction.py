"""Hidden: keys and passwords, kept out of the environment block and out of everything written.

A process's environment can be read in /proc by whatever it starts. So the first thing the command
does is to start itself anew without them, and to be handed them through a pipe.
"""

import base64
import ctypes
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import IO
from urllib.parse import quote, quote_plus

HANDED = "AGIRAPH_HANDED_FD"
"""The pipe through which a process was handed what it must keep to itself."""
SHORTEST = 8
"""Shorter values are no secrets, and would blot out ordinary words."""
_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_NAMES = frozenset({"AGIRAPH_DATABASE_URL", "OTEL_EXPORTER_OTLP_HEADERS"})
_PR_SET_DUMPABLE = 4
_PIECE = 1 << 20
_MASK = b"[hidden]"

_values: dict[str, str] = {}
_needles: list[str] = []


def is_secret(name: str) -> bool:
    return name in _NAMES or any(word in name.upper() for word in _WORDS)


def hide() -> None:
    """Make this process one whose environment tells nothing; may start it anew to get there."""
    if HANDED in os.environ:
        pipe = int(os.environ.pop(HANDED))
        with os.fdopen(pipe, "rb") as handed:
            keep(json.loads(handed.read()))
        # Not even a process of the same user may look into this one's memory.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        return
    secret = {name: value for name, value in os.environ.items() if is_secret(name) and value}
    if not secret:
        return
    reader, writer = os.pipe()
    os.write(writer, json.dumps(secret).encode())
    os.close(writer)
    os.set_inheritable(reader, True)
    environment = {name: value for name, value in os.environ.items() if name not in secret}
    environment[HANDED] = str(reader)
    os.execve(sys.executable, [sys.executable, "-m", "agiraph", *sys.argv[1:]], environment)


def keep(secrets: Mapping[str, str]) -> None:
    """Remember these, and never let them be written down."""
    _values.update(secrets)
    for value in secrets.values():
        if len(value) >= SHORTEST:
            raw = value.encode()
            forms = {value, base64.b64encode(raw).decode(), quote(value, safe=""), raw.hex()}
            _needles.extend(form for form in sorted(forms) if form not in _needles)


def environment() -> dict[str, str]:
    """The environment with what was hidden from it: for reading settings."""
    return {**os.environ, **_values}


def redact(text: str) -> str:
    """The text without any of the secrets."""
    for needle in _needles:
        if needle in text:
            text = text.replace(needle, "[hidden]")
    return text


def known() -> list[str]:
    """The names of the secrets that can be recognized."""
    return sorted(name for name, value in _values.items() if len(value) >= SHORTEST)


class Redactor:
    """Blots the secrets out of a stream of bytes, whose length stays as it was.

    It finds a secret as it is, escaped for JSON or an address, and in hexadecimal or base64, also
    in the middle of a longer text and broken into lines. It cannot find one that was compressed or
    encrypted.
    """

    def __init__(self) -> None:
        values = [value for value in _values.values() if len(value) >= SHORTEST]
        self._forms = sorted({form for value in values for form in _forms(value)}, key=len)
        # Twice the longest, as line breaks may stand within; what is kept back is searched again.
        self._overlap = 2 * max(map(len, self._forms), default=0)
        self._kept = b""
        self.count = 0
        """How many were found."""

    def stream(self, source: IO[bytes]) -> Iterator[bytes]:
        """The bytes of a file, redacted, piece by piece."""
        while piece := source.read(_PIECE):
            yield self.feed(piece)
        yield self.finish()

    def feed(self, piece: bytes) -> bytes:
        data = self._redacted(self._kept + piece)
        end = max(len(data) - self._overlap, 0)
        self._kept = data[end:]
        return data[:end]

    def finish(self) -> bytes:
        data, self._kept = self._redacted(self._kept), b""
        return data

    def _redacted(self, data: bytes) -> bytes:
        flat = data.translate(None, b"\r\n")
        for form in self._forms:
            if form in flat:
                # Slow, so only where something is to be found.
                broken = b"[\r\n]*".join(re.escape(form[i : i + 1]) for i in range(len(form)))
                data, count = re.subn(broken, lambda found: _masked(len(found[0])), data)
                self.count += count
        return data


def _masked(length: int) -> bytes:
    return (_MASK + b"*" * length)[:length]


def _forms(value: str) -> set[bytes]:
    """How a secret may be written."""
    raw = value.encode()
    addresses = {quote(value, safe=""), quote(value), quote_plus(value)}
    addresses |= {re.sub("%..", lambda found: found[0].lower(), form) for form in addresses}
    texts = {value, json.dumps(value)[1:-1], raw.hex(), raw.hex().upper(), *addresses}
    return {text.encode() for text in texts} | {form for n in range(3) for form in _base64(raw, n)}


def _base64(raw: bytes, before: int) -> set[bytes]:
    """What base64 makes of a secret that other bytes precede: without the characters at both ends
    that also depend on its neighbours."""
    first, end = (before * 8 + 5) // 6, (before + len(raw)) * 8 // 6
    padded = b"\0" * before + raw
    return {encode(padded)[first:end] for encode in (base64.b64encode, base64.urlsafe_b64encode)}
