"""Prompt: reads lines at a terminal while output arrives, and from pipes, files and /dev/null."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import at_terminal

HEAD = """
import asyncio, sys
from pathlib import Path
import uvloop
from rich.console import Console
from agiraph.cli.chat import Prompt
def prompt():
    return Prompt(Console(highlight=False), Path(sys.argv[1]), ["/board", "/inbox"])
"""
AT_A_TERMINAL = """
async def main():
    async with prompt() as p:
        async def print_later():
            while not p.has_begun:
                await asyncio.sleep(0.01)
            p.print("printed above")
        above = asyncio.create_task(print_later())
        p.print("ready")
        p.print(f"read {await p.line()!r}")
        p.stream("half a line")
        await p.interrupted.wait()
        p.print("interrupted")
        while (line := await p.line()) is not None:
            p.print(f"read {line!r}")
        p.print("no more lines")
uvloop.run(main())
"""
FROM_A_PIPE = """
async def main():
    async with prompt() as p:
        while (line := await p.line()) is not None:
            p.print(f"read {line!r}")
uvloop.run(main())
"""


@pytest.mark.slow
async def test_keys_are_read_into_the_line_they_were_typed_for(tmp_path: Path) -> None:
    program = (sys.executable, "-c", HEAD + AT_A_TERMINAL, str(tmp_path / "history"))
    async with at_terminal({}, *program) as typing:
        await typing.says("ready")
        typing.types(b"hel")
        await typing.says("printed above")
        typing.types(b"lo\r")
        await typing.says("read 'hello'")
        await typing.says("half a line")
        typing.types(b"\x03typed ahead\r")  # Ctrl-C between two lines
        await typing.says("interrupted")
        await typing.says("read 'typed ahead'")
        typing.types(b"/bo\t\r")
        await typing.says("read '/board'")
        typing.types(b"\x1b[200~two\nlines\x1b[201~\r")  # pasted
        await typing.says(r"read 'two\nlines'")
        typing.types(b"one\ntwo\n")  # pasted into a terminal without bracketed paste
        await typing.says("read 'one'")
        await typing.says("read 'two'")
        typing.types(b"xyz")
        await typing.says("xyz")  # wait: the history is loaded when the line is drawn
        typing.types(b"\x7f\x7f\x7f\x1b[A\r")  # Backspace, and Up
        await typing.says("read 'two'", times=2)
        typing.types(b"\x04")  # Ctrl-D
        ended = await typing.ends()
    assert (ended.code, "no more lines" in ended.out) == (0, True), ended.out


@pytest.mark.slow
async def test_lines_are_read_from_pipes_files_and_dev_null(tmp_path: Path) -> None:
    program = (sys.executable, "-c", HEAD + FROM_A_PIPE, str(tmp_path / "history"))
    words = b"one\n  two\n\xff"
    file = tmp_path / "lines"
    file.write_bytes(words)

    def run(**stdin: object) -> str:
        return subprocess.run(program, capture_output=True, check=True, **stdin).stdout.decode()  # type: ignore[call-overload]

    said = "read 'one'\nread 'two'\nread '\ufffd'\n"
    assert await asyncio.to_thread(run, input=words) == said
    with file.open() as opened:
        assert await asyncio.to_thread(run, stdin=opened) == said
    assert await asyncio.to_thread(run, stdin=subprocess.DEVNULL) == ""
    assert not (tmp_path / "history").exists()
