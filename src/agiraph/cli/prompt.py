"""Prompt: lines a person types, with history and completion, or that a pipe holds.

Line editing blocks, so it has a thread of its own, which is asked for one line at a time. What
others say meanwhile is written above the line that is being typed.
"""

import asyncio
import contextlib
import queue
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.text import Text

SIGN = "> "
HISTORY_LINES = 1000
_CLEAR_LINE = "\r\x1b[K"


class Prompt:
    def __init__(self, console: Console, history: Path, words: Sequence[str]) -> None:
        self.console = console
        self.is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._history = history
        self._words = words
        self._wanted = queue.SimpleQueue[bool]()
        self._typed = asyncio.Queue[str | None]()
        self._is_typing = False
        self._is_midline = False
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        if self.is_terminal:
            self._before = termios.tcgetattr(sys.stdin.fileno())
            _keep_keys(self._before)
            self._edit()
        loop = asyncio.get_running_loop()

        def hand_over(line: str | None) -> None:
            loop.call_soon_threadsafe(self._typed.put_nowait, line)

        threading.Thread(target=self._read, args=(hand_over,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wanted.put(False)
        if self._before is None:
            return
        import readline

        with contextlib.suppress(OSError):
            readline.write_history_file(self._history)
            self._history.chmod(0o600)
        # The thread may be left in the middle of a line, with the terminal as it needs it.
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
        if self._is_typing or self._is_midline:
            self.console.print()

    def _edit(self) -> None:
        import readline

        with contextlib.suppress(OSError):
            readline.read_history_file(self._history)
        readline.set_history_length(HISTORY_LINES)

        def complete(text: str, index: int) -> str | None:
            fitting = [word for word in self._words if word.startswith(text)] if text else []
            return fitting[index] if index < len(fitting) else None

        readline.set_completer(complete)
        readline.set_completer_delims(" ")
        readline.parse_and_bind("tab: complete")

    def _read(self, hand_over: Callable[[str | None], None]) -> None:
        # What a pipe holds need not be text all through.
        piped = open(sys.stdin.fileno(), errors="replace", closefd=False)  # noqa: SIM115
        while self._wanted.get():
            try:
                line = input(SIGN) if self.is_terminal else piped.readline()
            except EOFError:
                line = None
            hand_over(None if not line and not self.is_terminal else line)

    async def line(self) -> str | None:
        """The next line; None when there are no more."""
        self.end_words()
        self._is_typing = self.is_terminal
        self._wanted.put(True)
        line = await self._typed.get()
        self._is_typing = False
        return None if line is None else line.strip()

    @property
    def has_begun(self) -> bool:
        """Whether somebody is in the middle of typing a line."""
        return self._is_typing and bool(_typed_so_far())

    @property
    def is_typing(self) -> bool:
        return self._is_typing

    def print(self, *things: Any) -> None:
        """Print whole lines, above what is being typed."""

        def each(console: Console) -> None:
            for thing in things:  # tables fit themselves
                console.print(thing, soft_wrap=isinstance(thing, str | Text))

        self.above(each)

    def above(self, write: Callable[[Console], None]) -> None:
        """Let something be printed above what is being typed."""
        self.end_words()
        if self._is_typing:
            self.console.file.write(_CLEAR_LINE)
        write(self.console)
        if self._is_typing:
            self.console.file.write(SIGN + _typed_so_far())
        self.console.file.flush()

    def words(self, text: str) -> None:
        """Print some words of a line that goes on; not while somebody types."""
        if text:
            self.console.print(text, markup=False, end="")
            self.console.file.flush()
            self._is_midline = not text.endswith("\n")

    def end_words(self) -> None:
        if self._is_midline:
            self._is_midline = False
            self.console.print()


def _keep_keys(now: list[Any]) -> None:
    """Let keys wait for the next prompt as they were pressed.

    Between two lines a terminal gathers lines itself, and makes of Ctrl-D an end of file, which is
    nothing at all once line editing takes over: whoever pressed it then would wait in vain.
    """
    shown = now[3] & ~termios.ICANON & ~termios.ECHOCTL  # Enter as a new line, not as ^J
    changed = [*now[:3], shown, *now[4:6], list(now[6])]
    changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, changed)


def _typed_so_far() -> str:
    import readline

    return readline.get_line_buffer()
