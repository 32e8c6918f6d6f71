"""Shell tool: commands have timeouts, limits and no keys, and long output is shortened."""

import asyncio
import contextlib
import os
import re
from pathlib import Path

import pytest

from agiraph import faultpoints
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import endings
from agiraph.models.base import Request
from agiraph.sandbox import sandbox
from agiraph.sandbox.gate import environment
from agiraph.sandbox.sandbox import Limits
from agiraph.testing import PowerCut, Says, World, call, says
from tests.tools.tool_calls import ToolAnswer, node_folder, refused, run_calls
from tests.wording import Wording

CANARIES = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "AGIRAPH_TOKEN",
    "AGIRAPH_DATABASE_URL",
    "AWS_SECRET_ACCESS_KEY",
    "ANYTHING_ELSE",
)


async def test_a_command_runs_in_scratch_and_returns_its_exit_code(world: World) -> None:
    goal, told = await run_calls(
        world,
        call("bash", command="pwd && echo Grüße > a.md"),
        call("bash", command="echo out; echo err >&2; exit 3"),
        call("bash", command="true"),
        call("bash", command="kill -9 $$"),
        call("bash", command="no-such-program"),
        call("bash", command="if then"),
        call("bash", command="cat"),
    )

    scratch = node_folder(world, goal) / "scratch"
    assert told[:4] == [
        ToolAnswer(f"[exit code 0]\n{scratch}"),
        refused("[exit code 3]\nout\nerr"),
        ToolAnswer("[exit code 0]"),
        refused("[exit code 137]"),
    ]
    assert told[4] == refused("[exit code 127]\nbash: line 1: no-such-program: command not found")
    assert told[5].failed
    assert "syntax error" in told[5].text
    assert told[6] == ToolAnswer("[exit code 0]")
    assert world.published(goal) == {"a.md": "Grüße\n"}


async def test_a_command_over_its_timeout_is_ended_with_its_processes(world: World) -> None:
    late = "echo begun; (sleep 60; echo late > late) & sleep 60"
    goal, told = await run_calls(world, call("bash", command=late, timeout=1))

    assert told == [refused("[ended after 1 s: it ran out of time]\nbegun")]
    assert world.published(goal) == {}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_of_a_long_output_head_and_tail_are_shown(world: World) -> None:
    much = "echo head; yes 0123456 | head -c 100000000; echo tail"
    _, [told] = await run_calls(world, call("bash", command=much))

    found = re.fullmatch(
        r"\[exit code 0(?:, \d+ s)?\]\nhead\n(?:0123456\n)+(?:[0-6]*)?"
        r"\n… (\d+) bytes left out; the whole output is in (.+) …\n"
        r"[0-6]*\n(?:0123456\n)+tail",
        told.text,
    )
    assert found is not None
    assert not told.failed
    assert len(told.text.encode()) <= 17 * 1024
    assert Path(found[2]).stat().st_size == 100_000_010
    assert int(found[1]) > 99_900_000


async def test_no_key_reaches_a_command(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CANARIES:
        monkeypatch.setenv(name, f"canary {name}")
    goal, [told] = await run_calls(world, call("bash", command="env | sort"))

    seen = dict(line.split("=", 1) for line in told.text.splitlines()[1:])
    allowed = {"PATH", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ", "HOME", "PWD", "SHLVL", "_"}
    assert "canary" not in told.text
    gate = set(environment.of_command("packages", sandbox.GATE_PORT))
    assert set(seen) - {"OLDPWD", "AGIRAPH_SPOOL"} <= allowed | gate
    assert (seen["HOME"], seen["PATH"]) == (str(node_folder(world, goal)), os.environ["PATH"])


WRONG_CALLS = [
    {},
    {"command": ""},
    {"command": ["ls"]},
    {"command": "ls", "timeout": 0},
    {"command": "ls", "timeout": 3601},
    {"command": "ls", "cwd": "/"},
]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_wrong_call_runs_no_command(world: World, wording: Wording) -> None:
    _, told = await run_calls(world, *(call("bash", **arguments) for arguments in WRONG_CALLS))
    assert all(answer.failed for answer in told)
    wording({str(wrong): answer.text for wrong, answer in zip(WRONG_CALLS, told, strict=True)})


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_command_with_null_characters_or_too_many_bytes_is_refused(world: World) -> None:
    _, told = await run_calls(
        world, call("bash", command="echo a\0b"), call("bash", command="#" * 200_000)
    )

    assert told == [
        refused("The command contains a NUL character; leave it out."),
        refused(
            "The command has 200000 bytes, at most 131071 fit: run it from a file.\n"
            "The arguments of this call are long, and later requests show only their beginning and "
            "end. Do not send them again: write long text to a file, in several calls of at most "
            "20,000 characters, and name the file."
        ),
    ]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_result_of_a_command_that_ended_before_a_crash_is_read_from_its_spool(
    world: World,
) -> None:
    def cut(point: str) -> None:
        if point == "fx:after:command":
            raise PowerCut

    ada = world.script(
        "ada",
        says(call("bash", command="echo once >> log; cat log")),
        says(call("finish", summary="done")),
    )
    faultpoints.armed = cut
    try:
        founded = await world.found("Run it once")
        await world.settle()
    finally:
        faultpoints.armed = None
    await world.restart()
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.attempt) == (NodeStatus.COMPLETED, 2)
    assert ada.heard == "[exit code 0]\nonce"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_command_sees_only_what_its_agent_may_read_of_the_home(world: World) -> None:
    (world.path / "token").write_text("a secret")
    (world.path / "teams" / "other").mkdir(parents=True)
    (world.path / "teams" / "other" / "MEMORY.md").write_text("a secret")
    goal, told = await run_calls(
        world,
        call("bash", command=f"cat {world.path}/token {world.path}/agiraph.db"),
        call("bash", command=f"cat {world.path}/teams/other/MEMORY.md; ls {world.path}/teams"),
        call("bash", command=f"echo evil > {world.path}/agents/evil.md"),
        call("bash", command="cat ../_spec.md ../../../GOAL.md"),
        call("bash", command="echo evil > ../../../GOAL.md"),
        call("bash", command="echo mine > a.md; cat a.md"),
    )

    assert "a secret" not in str(told)
    assert [t.failed for t in told] == [True, False, True, False, True, False]
    assert told[1].text.endswith(f"No such file or directory\n{goal.team_id}")
    assert "# Goal" in told[3].text
    assert "Read-only file system" in told[4].text
    assert told[5] == ToolAnswer("[exit code 0]\nmine")
    assert not (world.path / "agents" / "evil.md").exists()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_long_output_can_be_read_by_the_next_command(world: World) -> None:
    def tail(request: Request) -> Says:
        [path] = re.findall(r"the whole output is in (\S+) …", request.transcript.last_spoken.text)
        return says(call("bash", command=f"sed -n 30000p {path}; echo evil > {path}"))

    ada = world.script(
        "ada",
        says(call("bash", command="seq 50000")),
        tail,
        says(call("finish", summary="done")),
    )
    await world.found("Look it up")
    await world.settle()

    assert ada.heard.startswith("[exit code 1]\n30000\nbash: line 1: ")
    assert ada.heard.endswith("Read-only file system")


async def test_a_command_over_a_limit_is_answered_with_the_limit(
    tmp_path: Path, database_url: str
) -> None:
    limits = Limits(processes=30, file_mib=1)
    async with World(
        tmp_path / "home", database_url=database_url, limits=limits, easy_endings=True
    ) as world:
        _, told = await run_calls(
            world,
            call("bash", command="for i in $(seq 99); do sleep 60 & done; wait"),
            call("bash", command="exec yes > f"),
        )

    hint = "Do it with less, or ask the human to raise the limit ([command_limits] in agiraph.toml)"
    assert re.fullmatch(
        rf"\[ended after \d+\.\d s: it had more than 30 processes at a time\. {re.escape(hint)}\]",
        told[0].text.splitlines()[0],
    )
    over = f": a file of it would have had more than 1 MiB. {hint}"
    assert told[1] == refused(f"[exit code 153{over}]")


async def test_a_cancelled_command_leaves_no_process_behind(world: World, tmp_path: Path) -> None:
    wait = f"mkfifo begun 2>/dev/null; echo yes > begun; sleep 600 # {tmp_path}"
    world.script("ada", says(call("bash", command=wait)))
    founded = await world.found("Wait for ever")
    assert founded.node is not None
    begun = node_folder(world, founded.node) / "scratch" / "begun"
    begun.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkfifo(begun)
    await asyncio.to_thread(begun.read_text)
    await world.store.write(endings.cancel, founded.node.id)
    await world.settle()

    assert (await world.node(founded.node.id)).status is NodeStatus.CANCELLED
    assert [p for p in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path) in _read(p)] == []


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # the process has just ended
