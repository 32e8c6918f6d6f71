"""The connection to PostgreSQL breaks during a commit: the rows say whether it was made."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from agiraph import faultpoints
from agiraph.core.domain.chat import Turn
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import spend
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.postgres_server import Server

BY_PEOPLE = ("create", "answer_question")
"""Verbs that the test calls itself; their callers check the rows before they repeat them."""


ANSWERS = ["Noted.", "[exit code 0]", "blue", "Published: .effects."]
DONE = says(call("finish", summary="done"))
REPEATED = {"in": (0, 1), "after": (0,)}
"""Model calls beyond those in the journal: only one whose answer was not stored is repeated."""


class BreakingConnection:
    """Breaks at one commit, before it is made (`in`) or before it is confirmed (`after`)."""

    def __init__(self, when: str) -> None:
        self.when = when
        self.commits: list[str] = []
        self.breaks_at = 0

    def __call__(self, point: str) -> None:
        where, when, verb = point.split(":")
        if (where, when) == ("db", self.when) and verb not in BY_PEOPLE:
            self.commits.append(verb)
            if len(self.commits) == self.breaks_at:
                raise psycopg.OperationalError("server closed the connection unexpectedly")


@pytest.fixture(params=["in", "after"])
def connection(request: pytest.FixtureRequest) -> Iterator[BreakingConnection]:
    faultpoints.armed = connection = BreakingConnection(request.param)
    yield connection
    faultpoints.armed = None


async def run(world: World) -> tuple[NewTeam, WorkNode]:
    """Let a team write, run a command, ask, get its answer and finish."""
    founded = await world.found("Do the work")
    await world.settle()
    for question in await world.questions(founded.team.id):
        await world.answer(question, "blue")
    await world.settle()
    [node] = await world.board(founded.team.id)
    return founded, node


def answers(turns: list[Turn]) -> list[str]:
    """Return the tool answers, without those of calls that did not run and are made again."""
    told = [turn.text for turn in turns if turn.role == "tool"]
    return [text for text in told if "It did not run" not in text]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_a_commit_that_was_not_confirmed_is_neither_lost_nor_repeated(
    tmp_path: Path,
    postgres: Server,
    connection: BreakingConnection,
    caplog: pytest.LogCaptureFixture,
    every: bool,
) -> None:
    """Break the last commit of each verb; in `make faults` every commit."""
    asked: list[int] = []

    def react(request: Request) -> Says:
        asked.append(request.transcript.head)
        match answers(request.transcript.turns):
            case []:
                return says(call("checkpoint", summary="begun"))
            case ["Noted."]:
                return says(call("bash", command="echo done >> .effects"))
            case ["Noted.", _]:
                return says(call("ask_human", question="Which colour?"))
            case _:
                return says(call("finish", summary="painted"))

    async with World(tmp_path / "home", database_url=postgres.fresh(), easy_endings=True) as world:
        world.model("ada", ReactiveModel("scripted/ada", react))
        await run(world)
        verbs, runs = connection.commits, 1
        last = {verb: k for k, verb in enumerate(verbs, start=1)}
        for k in range(1, len(verbs) + 1) if every else last.values():
            connection.breaks_at, connection.commits = k, []
            asked.clear()
            founded, node = await run(world)
            runs += 1
            where = f"{connection.when} {verbs[k - 1]}, the {k}. of {len(verbs)} commits"
            turns = await world.turns(node.id)
            replies = [turn for turn in turns if turn.role == "assistant"]
            assert (node.status, node.result) == (NodeStatus.COMPLETED, "painted"), where
            assert answers(turns) == ANSWERS, where
            assert [t.seq for t in turns] == list(range(1, len(turns) + 1)), where
            assert len(asked) - len(replies) in REPEATED[connection.when], where
            effects = [*world.path.glob("teams/*/nodes/*/scratch/.effects")]
            assert [file.read_text() for file in effects] == ["done\n"] * runs, where
            numbers = [e.seq for e in await world.events(founded.team.id)]
            assert numbers == list(range(1, len(numbers) + 1)), where
            assert [r.message for r in caplog.records if r.levelname == "ERROR"] == [], where


async def test_a_model_call_whose_answer_could_not_be_stored_is_charged(
    tmp_path: Path, postgres: Server
) -> None:
    async with World(tmp_path / "home", database_url=postgres.fresh(), easy_endings=True) as world:
        ada = world.script("ada", DONE, DONE)

        def breaks_once(point: str) -> None:
            if point == "db:in:reply":
                faultpoints.armed = None
                raise psycopg.OperationalError("server closed the connection unexpectedly")

        faultpoints.armed = breaks_once
        founded = await world.found("Be cut off")
        await world.settle()
        [node] = await world.board(founded.team.id)
        [spent] = await world.store.read(spend.of_node, node.id)
        assert (node.status, len(ada.requests)) == (NodeStatus.COMPLETED, 2)
        assert (spent.calls, spent.lost) == (1, 1)
