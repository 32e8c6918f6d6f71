"""Redaction: keeps secrets out of the process environment and out of everything written.

A child process can read its parent's environment in /proc. So the first thing the `agiraph` command
does is to execute itself again without the secrets, which it passes to itself through a pipe.
"""

import base64
import ctypes
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO
from urllib.parse import quote, quote_plus

PIPE_VARIABLE = "AGIRAPH_PIPE_VARIABLE_FD"
"""The environment variable that holds the number of the pipe with the secrets."""
SHORTEST_SECRET = 8
"""Shorter values are not redacted: they would match ordinary words."""
SHORTEST_LINE = 16
"""Shorter lines of a secret with several lines are redacted only together with the others."""
_NAME_PARTS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_NAMES = frozenset({"AGIRAPH_DATABASE_URL", "OTEL_EXPORTER_OTLP_HEADERS"})
_VARIABLES = re.compile(r"""["']env:\s*(\w+)|\w_env\s*=\s*["'](\w+)""")
"""Variables in agiraph.toml: `name = "env:VARIABLE"` and `key_env = "VARIABLE"`."""
_NEEDED = frozenset({"PATH", "HOME", "LANG", "USER", "AGIRAPH_HOME", "PYTHONPATH"})
"""Variables that stay in the environment, whatever the settings say."""
_LONGEST_SETTINGS = 1 << 20
_PR_SET_DUMPABLE = 4
_PIECE_BYTES = 1 << 20
_MASK = b"[hidden]"

_LOOKS_SECRET = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:ant|proj|live|test|or|svcacct|admin)?[-_a-zA-Z0-9]{0,12}[-_]?"
    r"(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{16,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{40,}|\bglpat-[A-Za-z0-9_-]{18,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{30,}|\bhf_[A-Za-z0-9]{30,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)"
    r"|(?i:\b\w+://[^\s:/@]+:[^\s@/]{4,}@)"
    r"|(?i:\b(?:bearer|authorization:)\s+(?=\S*\d)[A-Za-z0-9._~+/-]{20,})"
    # A password in words: only with a value that looks like one, not "the password is wrong".
    r"|(?i:\b(?:pass(?:word|phrase|wd)?|pwd|passwort|kennwort|api[ _-]?key|secret(?:[ _-]key)?|"
    r"access[ _-]?token|pin)\b\s*(?:is|ist|=|:|lautet)\s*[\"'`\u201c]?)"
    r"(?=\S*[0-9])(?=\S*[A-Za-z!#$%&*?@^_-]|\d{4,8}\b)[^\s\"'`\u201d,;]{4,}",
    re.DOTALL,
)
"""What keys of common vendors, tokens, private keys and passwords in words look like."""

_values: dict[str, str] = {}
_needles: list[str] = []


def is_secret(name: str) -> bool:
    """Whether an environment variable of this name holds a secret."""
    return name in _NAMES or any(word in name.upper() for word in _NAME_PARTS)


def hide() -> None:
    """Remove the secrets from this process's environment; executes the process again if needed."""
    if PIPE_VARIABLE in os.environ:
        pipe = int(os.environ.pop(PIPE_VARIABLE))
        with os.fdopen(pipe, "rb") as handed:
            keep(json.loads(handed.read()))
        # Not dumpable: other processes of the same user cannot read this one's memory or environ.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        return
    # /proc shows the environment that a process was started with, whatever it does to `os.environ`.
    # So the secrets can only be removed by executing the program again.
    environment = hand_over(os.environ)
    if environment is not None:
        os.execve(sys.executable, [sys.executable, "-m", "agiraph", *sys.argv[1:]], environment)


def hand_over(environ: Mapping[str, str]) -> dict[str, str] | None:
    """Put the secrets of this environment into a pipe; return the environment without them, which
    names the pipe. Return None if there are no secrets."""
    named = _named_in_settings(environ)
    secret = {n: value for n, value in environ.items() if value and (is_secret(n) or n in named)}
    if not secret:
        return None
    reader, writer = os.pipe()
    # The pipe's buffer (64 KiB on Linux) must hold all of it: the reader starts only after the
    # exec, so a write that does not fit would block for ever.
    os.write(writer, json.dumps(secret).encode())
    os.close(writer)
    # Python marks descriptors close-on-exec, and the new process needs this one.
    os.set_inheritable(reader, True)
    public = {name: value for name, value in environ.items() if name not in secret}
    return {**public, PIPE_VARIABLE: str(reader)}


def _named_in_settings(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the variables that agiraph.toml names as the places of secrets, whatever their names.

    The file is not parsed: that comes later, with errors that a person can read, and would delay
    every command.
    """
    home = Path(environ.get("AGIRAPH_HOME") or Path.home() / ".agiraph").expanduser()
    try:
        with (home / "agiraph.toml").open("rb") as file:
            text = file.read(_LONGEST_SETTINGS).decode(errors="replace")
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        return frozenset()
    found = {name for pair in _VARIABLES.findall(text) for name in pair if name}
    return frozenset(found) - _NEEDED


def keep(secrets: Mapping[str, str]) -> None:
    """Remember these secrets by name, so that `redact` removes them."""
    _values.update(secrets)
    for value in secrets.values():
        if len(value) >= SHORTEST_SECRET:
            raw = value.encode()
            # A command that prints a secret may have encoded it; these are the forms that tools use
            # by default.
            forms = {value, base64.b64encode(raw).decode(), quote(value, safe=""), raw.hex()}
            forms |= _escaped(value) | _long_lines(value)
            # Needles are only added: a token that was replaced may still
            # appear in what is written later.
            _needles.extend(form for form in sorted(forms) if form not in _needles)
    # The longest first: a part of a secret that is replaced first would leave the rest of it.
    _needles.sort(key=len, reverse=True)


def _escaped(value: str) -> set[str]:
    """Return the secret as JSON and Python write it inside quotes."""
    return {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}


def _long_lines(value: str) -> set[str]:
    """Return the lines of a secret that are long enough to be secret by themselves."""
    lines = value.splitlines() if "\n" in value else []
    return {line for line in lines if len(line) >= SHORTEST_LINE and not line.startswith("-----")}


def environment() -> dict[str, str]:
    """Return the environment with the secrets that were removed from it."""
    return {**os.environ, **_values}


def redact(text: str) -> str:
    """Return the text with every secret replaced by `[hidden]`."""
    for needle in _needles:
        if needle in text:
            text = text.replace(needle, "[hidden]")
    return text


def looks_secret(text: str) -> bool:
    """Whether the text holds a secret of this process, or what looks like a key or a password."""
    return redact(text) != text or _LOOKS_SECRET.search(text) is not None


def mask_secrets(text: str) -> str:
    """Return the text with secrets, and what looks like one, replaced by `[hidden]`."""
    return _LOOKS_SECRET.sub("[hidden]", redact(text))


def known() -> list[str]:
    """Return the names of the secrets that can be found in a text."""
    return sorted(name for name, value in _values.items() if len(value) >= SHORTEST_SECRET)


class Redactor:
    """Masks the secrets in a stream of bytes, without changing its length.

    It finds secrets in plain text, escaped for JSON or a URL, and in hexadecimal or base64, also
    within a longer text and broken into lines. It cannot find a compressed or encrypted secret.
    """

    def __init__(self) -> None:
        values = [value for value in _values.values() if len(value) >= SHORTEST_SECRET]
        self._forms = sorted({form for value in values for form in _forms(value)}, key=len)
        # Twice the longest form, because it may contain line breaks. The overlap is searched again.
        self._overlap = 2 * max(map(len, self._forms), default=0)
        self._kept = b""
        self.count: int = 0
        """How many secrets were masked."""

    def stream(self, source: IO[bytes]) -> Iterator[bytes]:
        """Yield the bytes of a file, redacted, piece by piece."""
        while piece := source.read(_PIECE_BYTES):
            yield self.feed(piece)
        yield self.finish()

    def feed(self, piece: bytes) -> bytes:
        """Return a piece redacted; its end, where a secret may begin, comes with the next piece."""
        data = self._redacted(self._kept + piece)
        end = max(len(data) - self._overlap, 0)
        self._kept = data[end:]
        return data[:end]

    def finish(self) -> bytes:
        """Return the rest, redacted."""
        data, self._kept = self._redacted(self._kept), b""
        return data

    def _redacted(self, data: bytes) -> bytes:
        flat = data.translate(None, b"\r\n")
        for form in self._forms:
            if form in flat:
                # The pattern is slow, so it is used only if the form occurs.
                broken = b"[\r\n]*".join(re.escape(form[i : i + 1]) for i in range(len(form)))
                data, count = re.subn(broken, lambda found: _masked(len(found[0])), data)
                self.count += count
        return data


def _masked(length: int) -> bytes:
    return (_MASK + b"*" * length)[:length]


def _forms(value: str) -> set[bytes]:
    """Return the forms in which a secret may be written."""
    raw = value.encode()
    addresses = {quote(value, safe=""), quote(value), quote_plus(value)}
    addresses |= {re.sub("%..", lambda found: found[0].lower(), form) for form in addresses}
    texts = {value, *_escaped(value), *_long_lines(value), raw.hex(), raw.hex().upper(), *addresses}
    return {text.encode() for text in texts} | {form for n in range(3) for form in _base64(raw, n)}


def _base64(raw: bytes, before: int) -> set[bytes]:
    """Return the base64 of a secret after so many other bytes, without the characters at both ends
    that depend on its neighbours."""
    first, end = (before * 8 + 5) // 6, (before + len(raw)) * 8 // 6
    padded = b"\0" * before + raw
    return {encode(padded)[first:end] for encode in (base64.b64encode, base64.urlsafe_b64encode)}
