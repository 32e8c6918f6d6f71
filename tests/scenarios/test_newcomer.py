"""Newcomer: the commands of README's first ten minutes, from an empty home to a stopped team."""

import re
import shlex
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import aiohttp
import orjson
import pytest

from agiraph.testing import ModelServer, call, says
from agiraph.testing.model_server import Seen, Step
from tests.cli.shell import Process, Shell
from tests.cli.test_run import use_model_server
from tests.scenarios.endings import defines, finishes

ROOT = Path(__file__).parents[2]
WHICH = "Which of them do you like best so far?"
NOTED = "Noted: speed comes first."


def readme_commands() -> list[list[str]]:
    """Return the command lines of README's first ten minutes, split into words."""
    readme = (ROOT / "README.md").read_text()
    [block] = re.findall(r"## The first ten minutes\n.*?```console\n(.*?)```", readme, re.DOTALL)
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in block.splitlines()]


def play(seen: Seen) -> Step:
    if "no_work_needed" in seen.tools:
        return says(NOTED)
    if "ask_human" not in seen.tools:
        return says("There is nothing to add.")
    answers = [
        message.text
        for message in seen.messages
        if message.role == "tool" and not message.text.startswith("Not answered yet")
    ]
    match len(answers):
        case 0:
            return says(defines("`compare.md` names the best"))
        case 1:
            return says(call("ask_human", question=WHICH))
        case 2:
            return says(call("write_file", path="compare.md", content=f"Best: {answers[1]}\n"))
        case _:
            return finishes("polars it is; see compare.md.", "file:compare.md")


async def check_sign_in_link(link: str) -> None:
    """Check that the link signs a browser in once, and that its session works afterwards."""
    origin = link.partition("/signin")[0]
    jar = aiohttp.CookieJar(unsafe=True)  # the host is an IP address
    async with aiohttp.ClientSession(cookie_jar=jar) as browser:
        async with browser.get(link, allow_redirects=False) as first:
            path, _, key = first.headers["Location"].partition("#key=")
            assert (first.status, path) == (303, "/")
        async with browser.get(f"{origin}/api/teams", headers={"X-Agiraph-Key": key}) as listed:
            assert (listed.status, await listed.json()) == (200, [])
        async with browser.get(f"{origin}/api/teams") as with_cookie_alone:
            assert with_cookie_alone.status == 401
    async with aiohttp.ClientSession() as stranger:
        async with stranger.get(link, allow_redirects=False) as again:
            assert again.status == 422
        async with stranger.get(f"{origin}/api/teams") as refused:
            assert refused.status == 401


class Newcomer:
    """Types the commands of README and checks their output."""

    def __init__(self, agiraph: Shell, folder: Path) -> None:
        self._agiraph = agiraph
        self._folder = folder
        self._question = ""

    async def types(self, *words: str) -> None:
        match words:
            case ("tail", team):
                async with self._agiraph.start("tail", team) as tail:
                    await tail.says(WHICH)
                    tail.signal(signal.SIGINT)
                    assert (await tail.ends()).code == 130
            case ("chat", team):
                async with self._agiraph.start_at_terminal("chat", team) as chat:
                    await self._chats(chat)
            case ("answer", "MESSAGE", text):
                await self._does("answer", self._question, text)
            case ("export", team, folder):
                await self._does("export", team, str(self._folder / folder))
            case _:
                await self._does(*words)

    async def _does(self, *words: str) -> None:
        ended = await self._agiraph(*words)
        assert (ended.code, ended.err) == (0, ""), (words, ended)
        match words:
            case ("say", *_):
                # What the reply has said, and below it what it has done.
                assert ended.out.startswith(f"{NOTED}\n")
                assert re.search(f"Told its own work “.+”: “{words[2]}”", ended.out)
            case ("inbox", "--open"):
                [self._question] = re.findall(r"msg_\w+", ended.out)
            case ("inbox",):
                assert "polars it is; see" in ended.out
            case ("cost", _):
                assert "Compare three CSV libraries" in ended.out
            case ("stop", _):
                assert ended.out.startswith("Stopped 'csv'.")
            case _:
                pass

    async def _chats(self, chat: Process) -> None:
        await chat.says("polars it is; see compare.md.")
        before = chat.has_said(f"coordinator  {NOTED}")  # replies to messages of earlier commands
        chat.types(b"How did it go?\n")
        await chat.says(f"coordinator  {NOTED}", times=before + 1)
        chat.types(b"/board\n")
        await chat.says("completed")
        chat.types(b"/quit\n")
        assert (await chat.ends()).code == 0


def test_make_up_runs_agiraph_up() -> None:
    command = ["make", "--no-print-directory", "-n", "up"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    assert told.stdout.endswith(".venv/bin/agiraph up\n")


@pytest.mark.timeout(300)
async def test_the_commands_of_the_readme_lead_to_a_result(
    tmp_path: Path,
) -> None:
    make, path, *commands = readme_commands()
    assert (make, path) == (["make", "up"], ["export", "PATH=$PWD/.venv/bin:$PATH"])
    agiraph = Shell(tmp_path / "home", {"AGIRAPH_PORT": "0"})
    # The server is executed as a newcomer does it. For the commands that would be the same again.
    executed = replace(agiraph, is_forked=False)

    async with ModelServer(play) as model, use_model_server(executed, model).start("up") as server:
        await server.says("Token for programs")
        [link] = re.findall(r"Sign in once: (\S+)", server.seen)
        agiraph.environment["AGIRAPH_PORT"] = re.findall(r":(\d+)/", link)[0]
        await check_sign_in_link(link)
        newcomer = Newcomer(agiraph, tmp_path)
        for program, *words in commands:
            assert program == "agiraph"
            await newcomer.types(*words)
        [team] = orjson.loads((await agiraph("teams", "--json")).out)
        assert (team["name"], team["status"]) == ("csv", "stopped")
        server.signal(signal.SIGTERM)
        assert (await server.ends()).code == 0

    [report] = (tmp_path / "csv-files" / "home" / "nodes").glob("*/published/compare.md")
    assert report.read_text() == "Best: polars\n"
