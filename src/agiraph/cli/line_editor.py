"""Line editor: editing, history and completion of the lines that a person types at a terminal.

Only `Prompt` imports this module, and only at a terminal: prompt_toolkit takes longer to load than
most commands take to run.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import DummyHistory, FileHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

PROMPT_SIGN = "> "


class LineEditor:
    """Reads lines from the terminal, and keeps the keys that are pressed between two lines."""

    def __init__(
        self, history: Path, words: Sequence[str], on_interrupt: Callable[[], None]
    ) -> None:
        self._on_interrupt = on_interrupt
        self._input = create_input()
        self._session = PromptSession[str](
            PROMPT_SIGN,
            history=_OwnersHistory(history),
            completer=WordCompleter(list(words), sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            reserve_space_for_menu=0,
            input=self._input,
            output=_output(),
            interrupt_exception=EOFError,
        )
        self._prints = set[asyncio.Future[None]]()
        self._terminal_state = contextlib.ExitStack()

    def __enter__(self) -> Self:
        # The terminal stays in raw mode between two lines too. In cooked mode, the kernel turns
        # a Ctrl-D into an end of file, which is lost when the next line switches to raw mode.
        self._terminal_state.enter_context(self._input.raw_mode())
        self._terminal_state.enter_context(self._input.attach(self._keep_keys))
        return self

    def __exit__(self, *_: object) -> None:
        self._terminal_state.close()

    def _keep_keys(self) -> None:
        """Store keys that are pressed between two lines for the next line; report Ctrl-C."""
        keys = self._input.read_keys()
        if any(press.key is Keys.ControlC for press in keys):
            self._on_interrupt()
        store_typeahead(self._input, [press for press in keys if press.key is not Keys.ControlC])
        if self._input.closed:
            # A closed terminal is always readable: its callback would use all of a core.
            asyncio.get_running_loop().remove_reader(self._input.fileno())

    async def line(self) -> str | None:
        """Return the next line; None after Ctrl-C, after Ctrl-D or when the terminal is closed."""
        try:
            # The chat has its own handlers for exceptions and SIGINT on the loop.
            line = await self._session.prompt_async(
                set_exception_handler=False, handle_sigint=False
            )
        except EOFError:
            line = None
        await asyncio.gather(*self._prints)
        return line

    async def secret(self, sign: str) -> str | None:
        """Return a line that is shown as asterisks and kept in no history."""
        session = PromptSession[str](
            sign,
            history=DummyHistory(),
            is_password=True,
            input=self._input,
            output=_output(),
            interrupt_exception=EOFError,
        )
        try:
            return await session.prompt_async(set_exception_handler=False, handle_sigint=False)
        except EOFError:
            return None

    @property
    def text(self) -> str:
        """Return the text of the line that is being typed."""
        return self._session.default_buffer.text

    def print_above(self, write: Callable[[], None]) -> None:
        """Call `write` soon, with the line that is being typed out of the way."""

        async def run() -> None:
            await run_in_terminal(write)

        printed = asyncio.ensure_future(run())
        self._prints.add(printed)
        printed.add_done_callback(self._prints.discard)


class _OwnersHistory(FileHistory):
    """A history file that only its owner can read; a chat goes on if it cannot be used."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with contextlib.suppress(OSError):
            # Created before prompt_toolkit does it with the umask's mode: people type secrets into
            # a chat.
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))

    def load_history_strings(self) -> Iterable[str]:
        try:
            return super().load_history_strings()
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):
            super().store_string(string)


def _output() -> Vt100_Output:
    output = create_output()
    assert isinstance(output, Vt100_Output)
    # Asking for the cursor's position serves menus, which are not used here. Terminals that do not
    # answer would delay every line and print a warning.
    output.enable_cpr = False
    return output
