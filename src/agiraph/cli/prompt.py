"""Prompt: the lines of a conversation, typed at a terminal or read from a pipe, and its output."""

import asyncio
import os
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:  # loaded at a terminal only: see the module
    from agiraph.cli.line_editor import LineEditor

PIPED_LINE_BYTES = 16 * 1024 * 1024
"""The longest line that is read from a pipe."""


class Prompt:
    """Reads lines and prints output; output never mixes with the line that is being typed."""

    def __init__(self, console: Console, history: Path, words: Sequence[str]) -> None:
        self.console = console
        self.is_terminal: bool = sys.stdin.isatty() and sys.stdout.isatty()
        self.interrupted: asyncio.Event = asyncio.Event()
        """Set when the person presses Ctrl-C between two lines."""
        self._history = history
        self._words = words
        self._editor: LineEditor | None = None
        self._pipe: asyncio.StreamReader | None = None
        self._is_typing = False
        self._is_midline = False

    async def __aenter__(self) -> Self:
        if self.is_terminal:
            from agiraph.cli.line_editor import LineEditor

            self._editor = LineEditor(self._history, self._words, self.interrupted.set).__enter__()
        else:
            self._pipe = await _open_pipe()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._editor is not None:
            self._editor.__exit__()
        self.end_stream()

    async def line(self) -> str | None:
        """Return the next line without its margins; None when there are no more lines."""
        self.end_stream()
        self._is_typing = self._editor is not None
        try:
            line = await self._next_line()
        finally:
            self._is_typing = False
        return None if line is None else line.strip()

    async def secret(self, sign: str) -> str | None:
        """Return the next line, which is neither shown nor kept in the history."""
        self.end_stream()
        self._is_typing = self._editor is not None
        try:
            line = await (self._next_line() if self._editor is None else self._editor.secret(sign))
        finally:
            self._is_typing = False
        return None if line is None else line.strip()

    async def _next_line(self) -> str | None:
        if self._editor is not None:
            return await self._editor.line()
        assert self._pipe is not None, "a prompt is entered before it is read"
        read = await self._pipe.readline()
        return read.decode(errors="replace") if read else None

    @property
    def has_begun(self) -> bool:
        """Whether the person has typed part of a line."""
        return self._is_typing and self._editor is not None and bool(self._editor.text)

    @property
    def is_typing(self) -> bool:
        """Whether the prompt waits for a line at a terminal."""
        return self._is_typing

    def print(self, *things: Any) -> None:
        """Print whole lines, above the line that is being typed."""

        def print_each(console: Console) -> None:
            for thing in things:  # tables fit themselves into the width
                console.print(thing, soft_wrap=isinstance(thing, str | Text))

        self.print_above(print_each)

    def print_above(self, write: Callable[[Console], None]) -> None:
        """Let `write` print whole lines, above the line that is being typed."""
        self.end_stream()
        # Printing straight to the terminal would tear apart the line that is being typed.
        if self._editor is not None and self._is_typing:
            self._editor.print_above(lambda: self._write(write))
        else:
            self._write(write)

    def _write(self, write: Callable[[Console], None]) -> None:
        write(self.console)
        self.console.file.flush()

    def stream(self, text: str) -> None:
        """Print a piece of a line that is still arriving. Call this only while nobody types."""
        if text:
            self.console.print(text, markup=False, end="")
            self.console.file.flush()
            self._is_midline = not text.endswith("\n")

    def end_stream(self) -> None:
        """End the line that `stream` began, if there is one."""
        if self._is_midline:
            self._is_midline = False
            self.console.print()


async def _open_pipe() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=PIPED_LINE_BYTES)
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty():
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    else:  # files and /dev/null never block; epoll refuses them, and uvloop aborts the process
        reader.feed_data(sys.stdin.buffer.read())
        reader.feed_eof()
    return reader
