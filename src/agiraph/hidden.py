"""Hidden: keys and passwords, kept out of the environment block and out of everything written.

A process's environment can be read in /proc by whatever it starts. So the first thing the command
does is to start itself anew without them, and to be handed them through a pipe.
"""

import base64
import ctypes
import json
import os
import sys
from collections.abc import Mapping
from urllib.parse import quote

HANDED = "AGIRAPH_HANDED_FD"
"""The pipe through which a process was handed what it must keep to itself."""
SHORTEST = 8
"""Shorter values are no secrets, and would blot out ordinary words."""
_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_NAMES = frozenset({"AGIRAPH_DATABASE_URL", "OTEL_EXPORTER_OTLP_HEADERS"})
_PR_SET_DUMPABLE = 4

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
