"""A team in the terminal: its agents, tasks and threads."""

import orjson
import pytest

from agiraph.testing import ModelServer, Says, call, says
from agiraph.testing.script import Seen
from tests.cli.shell import Shell
from tests.cli.test_run import use_model_server


def play(seen: Seen) -> Says:
    """A coordinator that assigns one task to a writer and one to a program."""
    answers = [message for message in seen.messages if message.role == "tool"]
    if "You are writer" in seen.system:
        if not answers:
            return says(call("write_file", path="poem.md", content="One\nTwo\nThree\n"))
        return says(call("publish", summary="The poem is written."))
    if not answers:
        program = "cli:printf 'counting\\n'; echo 'Three lines.' > _result.md"
        return says(
            call("assign_task", agent="writer", task="Write a poem", description="the poem"),
            call("assign_task", agent=program, task="Count the lines", description="the count"),
        )
    return says(call("finish", summary="A poem of three lines."))


async def test_a_run_shows_agents_and_tasks_and_commands_show_their_threads(agiraph: Shell) -> None:
    async with ModelServer(play) as server:
        run = await use_model_server(agiraph, server)(
            "run", "Have a poem written", "--accept", "answer"
        )
    assert run.code == 0, run.out + run.err
    [team] = (agiraph.home / "teams").iterdir()
    for line in (
        "+ writer joins (writer, openai/",
        "+ printf joins (worker, cli)",
        "◇ new task: the poem",
        "│ printf counting",
        "✓ writer Published: poem.md.",
    ):
        assert line in run.out, (line, run.out)

    told = await agiraph("agents", team.name, "--all", "--json")
    agents = {agent["name"]: agent for agent in orjson.loads(told.out)}
    assert {name: (a["status"], a["persistent"]) for name, a in agents.items()} == {
        "coordinator": ("idle", True),
        "writer": ("left", False),
        "printf": ("left", False),
    }
    root = agents["coordinator"]["thread_id"]
    assert [agents[name]["thread_id"] for name in ("writer", "printf")] == [
        f"{root}.1",
        f"{root}.2",
    ]
    assert agents["writer"]["parent_thread_id"] == root

    mine = agents["writer"]["thread_id"]
    thread = await agiraph("thread", mine)
    assert thread.out.startswith(f"{mine}\n")
    assert "[Task] You have been given a task." in thread.out
    assert "→ publish {'summary': 'The poem is written.', 'reached': 'yes'}" in thread.out
    assert (await agiraph("thread", agents["writer"]["id"])).out == thread.out

    board = await agiraph("board", team.name)
    for words in ("the poem", "writer", "the count", "Three lines."):
        assert words in board.out, board.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("agents", "nobody"), "There is no team 'nobody'. `agiraph teams` lists them."),
        (("thread", "t_9"), "There is no thread 't_9'. `agiraph agents` lists agents and threads."),
    ],
)
async def test_an_unknown_team_or_thread_is_reported(
    agiraph: Shell, words: tuple[str, ...], said: str
) -> None:
    ended = await agiraph(*words)
    assert (ended.code, ended.out, ended.err) == (1, "", f"agiraph: {said}\n")
