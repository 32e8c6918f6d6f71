"""Redaction: keeps secrets out of everything written."""

import base64
import json
import os
import re
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import IO, cast
from urllib.parse import quote, quote_plus

from agiraph.late_patterns import late

SHORTEST_SECRET = 8
"""Shorter values are not redacted: they would match ordinary words."""
SHORTEST_LINE = 16
"""Shorter lines of a secret with several lines are redacted only together with the others."""
_PIECE_BYTES = 1 << 20
_CONTEXT_BYTES = 64
_MASK = b"[hidden]"
_FIELD_NAME = re.compile("[a-z_]{1,40}")

_LOOKS_SECRET = late(
    r"\b(?:sk|pk|rk)[-_](?=[A-Za-z_-]{0,80}\d)[A-Za-z0-9_-]{16,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{40,}|\bglpat-[A-Za-z0-9_-]{18,}"
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{30,}|\bhf_[A-Za-z0-9]{30,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|(?<![\w-])eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)"
    r"|(?i:\b\w+://[^\s:/@]+:[^\s@/]{4,}@)"
    r"|(?i:\b(?:bearer|authorization:)\s++(?=\S{0,200}\d)[A-Za-z0-9._~+/-]{20,})"
    # A password in words: only with a value that looks like one, not "the password is wrong".
    r"|(?i:\b(?:pass(?:word|phrase|wd)?|pwd|passwort|kennwort|api[ _-]?key|secret(?:[ _-]key)?|"
    r"access[ _-]?token|pin)\b\s*+(?:is|ist|=|:|lautet)\s*+[\"'`\u201c]?)"
    r"(?=\S{0,80}[0-9])(?=\S{0,80}[A-Za-z!#$%&*?@^_-]|\d{4,8}\b)[^\s\"'`\u201d,;]{4,}",
    re.DOTALL,
)
"""What keys of common vendors, tokens, private keys and passwords in words look like."""

_values: dict[str, str] = {}
_lasting: set[str] = set()
"""The forms of all secrets that `keep` got. A replaced token stays: it may still be written."""
_needles: list[str] = []
"""These forms and those of the values in `kept`, the longest first."""
_changing = threading.Lock()
"""Held while the list of secrets changes: own tools may add a secret from a worker thread."""
_numbers = count()
_ENTERED = "entered key "


def keep(secrets: Mapping[str, str]) -> None:
    """Remember these secrets by name, so that `redact` removes them."""
    with _changing:
        _values.update(secrets)
        _lasting.update(_forms_of_all(secrets.values()))
        _update_needles()


@contextmanager
def kept(value: str) -> Generator[None, None, None]:
    """Remember what may be a secret while the block runs. It is forgotten then, unless `keep` got
    it meanwhile: a word that is no secret would be taken out of ordinary texts."""
    name = f"{_ENTERED}{next(_numbers)}"
    with _changing:
        _values[name] = value
        _update_needles()
    try:
        yield
    finally:
        with _changing:
            del _values[name]
            _update_needles()


def _update_needles() -> None:
    """Rebuild the list of what `redact` removes. The caller holds `_changing`."""
    global _needles
    entered = [value for name, value in _values.items() if name.startswith(_ENTERED)]
    # The longest first: a part of a secret that is replaced first would leave the rest of it.
    # A new list, because other threads may be reading the old one.
    _needles = sorted(_lasting.union(_forms_of_all(entered)), key=len, reverse=True)


def _forms_of_all(values: Iterable[str]) -> set[str]:
    return {form for v in values if len(v) >= SHORTEST_SECRET for form in _usual_forms(v)}


def _usual_forms(value: str) -> list[str]:
    """Return a secret and its usual encodings (base64, percent, hex, escapes, wrapped lines).

    A command may print a secret in one of them, and each has to be redacted.
    """
    raw = value.encode()
    forms = {value, base64.b64encode(raw).decode(), quote(value, safe=""), raw.hex()}
    return sorted(forms | _escaped(value) | _long_lines(value))


def _escaped(value: str) -> set[str]:
    """Return the secret as JSON and Python write it inside quotes."""
    return {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}


def _long_lines(value: str) -> set[str]:
    """Return the lines of a secret that are long enough to be secret by themselves."""
    lines = value.splitlines() if "\n" in value else []
    return {line for line in lines if len(line) >= SHORTEST_LINE and not line.startswith("-----")}


def environment() -> dict[str, str]:
    """Return the environment with the secrets that were removed from it."""
    with _changing:
        return {**os.environ, **_values}


def redact(text: str) -> str:
    """Return the text with every secret replaced by `[hidden]`."""
    for needle in _needles:
        if needle in text:
            text = text.replace(needle, "[hidden]")
    return text


def redact_json(text: str) -> str:
    """Return a JSON document with every secret in its texts replaced by `[hidden]`.

    It stays valid JSON with the same shape. Numbers are not changed, even if they contain a secret
    that consists of digits, and neither are keys that look like field names.
    """
    if redact(text) == text:
        return text
    return json.dumps(_redacted_value(json.loads(text)), ensure_ascii=False, separators=(",", ":"))


def _redacted_value(value: object) -> object:
    match value:
        case str():
            return redact(value)
        case list():
            return [_redacted_value(each) for each in cast(list[object], value)]
        case dict():
            fields = cast(dict[str, object], value).items()
            return {_redacted_key(key): _redacted_value(each) for key, each in fields}
        case _:
            return value


def _redacted_key(key: str) -> str:
    return key if _FIELD_NAME.fullmatch(key) else redact(key)


def looks_secret(text: str) -> bool:
    """Whether the text holds a secret of this process, or what looks like a key or a password."""
    return redact(text) != text or _LOOKS_SECRET.search(text) is not None


def mask_secrets(text: str) -> str:
    """Return the text with secrets, and what looks like one, replaced by `[hidden]`."""
    return _LOOKS_SECRET.sub("[hidden]", redact(text))


def known() -> list[str]:
    """Return the names of the secrets that can be found in a text."""
    with _changing:
        return sorted(name for name, value in _values.items() if len(value) >= SHORTEST_SECRET)


class Redactor:
    """Masks the secrets in a stream of bytes, without changing its length.

    It finds secrets in plain text, escaped for JSON or a URL, and in hexadecimal or base64, also
    within a longer text and broken into lines. It cannot find a compressed or encrypted secret.
    """

    def __init__(self) -> None:
        with _changing:
            values = [value for value in _values.values() if len(value) >= SHORTEST_SECRET]
        self._forms = sorted({form for value in values for form in _forms(value)}, key=len)
        self._numbers = {value.encode() for value in values if value.encode().isdigit()}
        # Twice the longest form, because it may contain line breaks. The overlap is searched again.
        self._overlap = 2 * max(map(len, self._forms), default=0)
        self._kept = b""
        self._context = b""
        """The last bytes returned. The bytes before a secret decide how it is masked."""
        self.count: int = 0
        """How many secrets were masked."""

    def stream(self, source: IO[bytes]) -> Iterator[bytes]:
        """Yield the bytes of a file, redacted, piece by piece."""
        while piece := source.read(_PIECE_BYTES):
            yield self.feed(piece)
        yield self.finish()

    def feed(self, piece: bytes) -> bytes:
        """Return a piece redacted; its end, where a secret may begin, comes with the next piece."""
        data = self._redacted(self._kept + piece, is_last=False)
        end = max(len(data) - self._overlap, 0)
        self._kept = data[end:]
        self._context = (self._context + data[:end])[-_CONTEXT_BYTES:]
        return data[:end]

    def finish(self) -> bytes:
        """Return the rest, redacted."""
        data, self._kept = self._redacted(self._kept, is_last=True), b""
        return data

    def _redacted(self, data: bytes, *, is_last: bool) -> bytes:
        flat = data.translate(None, b"\r\n")
        data = self._context + data
        for form in self._forms:
            if form in flat:
                # The pattern is slow, so it is used only if the form occurs.
                broken = b"[\r\n]*".join(re.escape(form[i : i + 1]) for i in range(len(form)))
                if form in self._numbers:
                    # Inside a longer number, the same digits are a coincidence.
                    behind = rb"(?!\d|\.\d)" if is_last else rb"(?=[^\d.]|\.[^\d])"
                    broken = rb"(?<!\d)(?<!\d\.)" + broken + behind
                data, count = re.subn(broken, _masked, data)
                self.count += count
        return data[len(self._context) :]


def _masked(found: re.Match[bytes]) -> bytes:
    """Return a mask of the same length that keeps JSON valid."""
    data, length = found.string, len(found[0])
    if _is_json_number(found):
        return b"9" * length
    # The first character may belong to an escape, as the n in `\nine` does.
    before = data[max(found.start() - _CONTEXT_BYTES, 0) : found.start()]
    is_escape = (len(before) - len(before.rstrip(b"\\"))) % 2 == 1
    start = found[0][:1] if is_escape else b""
    return (start + _MASK + b"*" * length)[:length]


def _is_json_number(found: re.Match[bytes]) -> bool:
    """Whether the match is digits that stand where JSON has a number."""
    if not found[0].isdigit():
        return False
    before = found.string[max(found.start() - 8, 0) : found.start()].rstrip(b" \n-")[-1:]
    after = found.string[found.end() : found.end() + 8].lstrip(b" \n")[:1]
    return before in (b":", b",", b"[") and after in (b",", b"]", b"}")


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
