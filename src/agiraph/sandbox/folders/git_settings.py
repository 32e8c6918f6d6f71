"""Git settings: reads a file of git's settings, without running git."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

MOST_BYTES = 2**20
_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][\w-]*)[ \t]*")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


class Setting(NamedTuple):
    """One setting of git."""

    section: str
    key: str
    value: str


def read_text(path: str) -> str:
    """Return what a small file holds; empty if there is none. A pipe or device is not opened."""
    with suppress(OSError):
        # O_NONBLOCK: a command may have put a pipe there, whose opening would block.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return file.read(MOST_BYTES).decode(errors="surrogateescape")
    return ""


def settings(text: str) -> Iterator[Setting]:
    """Yield the settings of a file, sections and keys in lower case, as git reads them."""
    section, at = "", 0
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    while at < len(text):
        if found := _SECTION.match(text, at):
            section, at = found[1].split(".")[0].lower(), found.end()
        elif text[at] in "#;":
            at = (text.find("\n", at) + 1) or len(text)
        elif found := _KEY.match(text, at):
            value, at = _value(text, found.end())
            yield Setting(section, found[1].lower(), value)
        else:
            at += 1


def _value(text: str, at: int) -> tuple[str, int]:
    """Return the value that begins here, and where it ends."""
    if text[at : at + 1] != "=":
        return "true", at
    made, kept, is_quoted = "", 0, False
    at += 1
    while at < len(text):
        char, at = text[at], at + 1
        if char == "\n" or (char in "#;" and not is_quoted):
            at = at - 1 if char == "\n" else (text.find("\n", at) + 1) or len(text)
            break
        if char == '"':
            is_quoted = not is_quoted
        elif char == "\\":
            escaped, at = text[at : at + 1], at + 1
            made += "" if escaped == "\n" else _ESCAPES.get(escaped, escaped)
        else:
            made += char
        kept = len(made) if is_quoted or not char.isspace() else kept
    return made[:kept].lstrip(), at
