"""Seed scenario 9: a monitor works in cycles without end, through restarts."""

import re
from datetime import timedelta
from pathlib import Path

from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.lifecycle import teams
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.clock import ManualClock
from agiraph.testing.scripted import ReactiveModel
from tests.api.serving import serving
from tests.doubts import doubts_of
from tests.fences import opened
from tests.local_web import Page, local_web

FRONT = "http://news.example/"
GOAL = (
    f"Monitor the front page of {FRONT}. Every cycle, check for AI-related posts and update a "
    "running summary."
)
CYCLE = timedelta(hours=8)
DAYS = {"sqlite": 7, "postgresql": 3}
"""`test_watch_a_month` runs for longer."""
SUMMARY = "memory/knowledge/news_summary.md"
KEPT = "memory/unverified/knowledge/news_summary.md"
"""Where the summary is kept: its words are strangers'."""
POSTS = 3
"""The number of posts on the front page: a new one each cycle, and the two before it."""


def front_page(number: int) -> str:
    return "\n".join(f"{n}: AI news number {n}" for n in range(number, max(number - POSTS, 0), -1))


def news_of(clock: ManualClock) -> dict[str, dict[str, Page]]:
    """Return a site whose front page has a new post each cycle."""
    begun = clock.now()
    return {"news.example": {"/": Page(lambda _: front_page((clock.now() - begun) // CYCLE + 1))}}


def monitors(request: Request) -> Says:
    """A monitor that knows earlier cycles only from its notes."""
    turns = list(request.transcript.spoken())
    said = [turn.text for turn in turns if turn.role == "tool"]
    match len(said):
        case 0:
            return says(call("web_fetch", url=FRONT), call("read_file", path=KEPT))
        case 2:
            page, before = (opened(text) for text in said)
            known = "".join(f"{line}\n" for line in before.splitlines() if "AI news" in line)
            posts = [line for line in page.splitlines()[::-1] if "AI news" in line]
            fresh = [line for line in posts if line not in known.splitlines()]
            lines = "".join(f"{line}\n" for line in fresh)
            cycle = re.search(r"Cycle (\d+)", turns[0].text)
            note = f"memory/experiences/cycle-{cycle[1] if cycle else 1}.md"
            return says(
                call("memory_write", path=SUMMARY, content=known + lines),
                call("memory_write", path=note, content=f"reported:\n{lines}"),
                call("checkpoint", summary=f"reported {len(fresh)} new"),
            )
        case _:
            return says(call("finish", summary="The summary is up to date."))


async def pass_cycle(world: World) -> None:
    await world.pass_time(seconds=CYCLE.total_seconds())


async def test_a_monitor_runs_in_cycles_for_a_month_and_stops(
    tmp_path: Path, database_url: str
) -> None:
    clock = ManualClock()
    async with local_web(clock, news_of(clock)) as served:
        world = World(tmp_path / "home", database_url=database_url, clock=clock, web=served.access)
        world.model("ada", ReactiveModel("scripted/ada", monitors))
        await world.start()
        await _run(world, tmp_path / "home", DAYS[database_url.partition(":")[0]])
        await world.stop()


def _written(note: Path) -> str:
    """Return what the agent wrote in an unverified note, without the lines above that say so."""
    head, _, words = note.read_text().partition("\n\n")
    assert head.startswith("> Unverified")
    return words


async def _run(world: World, path: Path, days: int) -> None:
    founded = await world.found(GOAL, mode="infinite", heartbeat=CYCLE.total_seconds())
    await world.settle()
    home = path / "teams" / founded.team.id
    summaries = [_written(home / KEPT)]
    cycles = days * int(timedelta(days=1) / CYCLE)
    for number in range(1, cycles):
        await pass_cycle(world)
        summaries.append(_written(home / KEPT))
        if number % 10 == 0:
            await world.restart()

    board = await world.board(founded.team.id)
    [heartbeat] = await world.triggers(founded.team.id)
    # Each cycle was a node that completed with a checkpoint.
    assert len(board) == cycles
    assert {n.status for n in board} == {NodeStatus.COMPLETED}
    assert {(n.stop_reason, doubts_of(n)) for n in board} == {(StopReason.FINISHED, None)}
    assert [n.source for n in board] == ["system"] + ["trigger"] * (cycles - 1)
    assert [n.title for n in board[1:]] == [f"Cycle {n}" for n in range(2, cycles + 1)]
    assert all(n.parent_id is None and n.checkpoint == "reported 1 new" for n in board)
    assert "reported 1 new" in board[-1].task  # the checkpoint of the cycle before
    assert (heartbeat.fired, heartbeat.skipped) == (cycles - 1, 0)
    fired = [firing.outcome for firing in await world.firings(heartbeat.id)]
    assert fired == ["fired"] * (cycles - 1)
    # The summary was updated each cycle, and nothing was reported twice.
    assert len(set(summaries)) == cycles
    lines = summaries[-1].splitlines()
    assert lines == [f"{n}: AI news number {n}" for n in range(1, cycles + 1)]
    # memory/ has notes from each cycle, and nobody was asked for any of it.
    folder = home / "memory/unverified/experiences"
    notes = {path.name: _written(path) for path in folder.iterdir()}
    assert await world.questions(founded.team.id) == []
    assert notes == {
        f"cycle-{n}.md": f"reported:\n{n}: AI news number {n}\n" for n in range(1, cycles + 1)
    }
    calls = {row.node_id: row.calls for row in await world.ledger(founded.team.id)}
    assert calls == {node.id: 3 for node in board}

    # It stops on request, and stays stopped.
    await world.store.write(teams.stop, founded.team.id)
    await world.settle()
    [heartbeat] = await world.triggers(founded.team.id)
    assert (heartbeat.status, heartbeat.ended) == ("expired", "the team was stopped")
    await world.restart()
    for _ in range(3):
        await pass_cycle(world)
    assert len(await world.board(founded.team.id)) == cycles
    ends = [e.type for e in await world.events(founded.team.id)][-2:]
    assert ends == ["team.stopped", "trigger.ended"]


async def test_a_cycle_that_waits_for_a_person_is_cancelled_when_the_team_stops(
    tmp_path: Path, database_url: str
) -> None:
    clock = ManualClock()
    async with (
        local_web(clock, news_of(clock)) as served,
        World(
            tmp_path / "home", database_url=database_url, clock=clock, web=served.access
        ) as world,
    ):
        look = says(call("web_fetch", url=FRONT))
        held = world.script("ada", look, says(call("finish", summary="first")), look)
        founded = await world.found(GOAL, mode="infinite", heartbeat=30)
        await world.settle()
        held.lines.append(says(call("ask_human", question="Is this AI?")))
        await world.pass_time(seconds=30)
        assert len(await world.questions(founded.team.id)) == 1

        await world.store.write(teams.stop, founded.team.id)
        await world.settle()
        statuses = [n.status for n in await world.board(founded.team.id)]
        assert statuses == [NodeStatus.COMPLETED, NodeStatus.CANCELLED]
        await world.pass_time(days=1)
        assert len(await world.board(founded.team.id)) == 2


DESK = "agents/coordinator/hn_summary.md"


def keeps_a_file(request: Request) -> Says:
    """A monitor that goes on with one file; its prompt says where such a file is."""
    turns = list(request.transcript.spoken())
    said = [turn.text for turn in turns if turn.role == "tool"]
    match len(said):
        case 0:
            assert "Cycle" not in turns[0].text or f"is {DESK.rpartition('/')[0]}/NAME" in (
                " ".join(turns[0].text.split())
            )
            return says(call("read_file", path=DESK))
        case 1:
            before = said[0] if "cycle" in said[0] else ""
            lines = re.findall(r"cycle \d+", before)
            content = "".join(f"{line}\n" for line in [*lines, f"cycle {len(lines) + 1}"])
            return says(call("write_file", path=DESK, content=content))
        case _:
            return says(call("finish", summary="The file is up to date."))


async def test_a_team_with_a_cycle_of_30_seconds_goes_on_with_one_file(
    tmp_path: Path, database_url: str
) -> None:
    body = {"goal": GOAL, "mode": "infinite", "interval": 30, "learns": False}
    async with serving(tmp_path / "home", database_url=database_url) as served:
        world = served.world
        world.model("ada", ReactiveModel("scripted/ada", keeps_a_file))
        status, team = await served.ask("POST", "/teams", body)
        assert (status, team["interval"]) == (201, 30.0)
        await world.settle()
        for _ in range(2):
            await world.pass_time(seconds=31)
        kept = world.path / "teams" / team["id"] / DESK
        assert kept.read_text() == "cycle 1\ncycle 2\ncycle 3\n"
