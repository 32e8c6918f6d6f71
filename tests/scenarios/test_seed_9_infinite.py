"""Seed scenario 9: a monitor works in cycles without end, through restarts."""

import re
from datetime import timedelta
from pathlib import Path

from agiraph.domain.outcomes import Answer, Done
from agiraph.domain.work import NodeStatus, StopReason
from agiraph.providers.base import Request
from agiraph.run_context import RunContext
from agiraph.services.lifecycle import teams
from agiraph.services.lifecycle.timers import fire_due
from agiraph.store import spend
from agiraph.store import triggers as rows
from agiraph.store.tx import Tx
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from agiraph.tools.base import tool

GOAL = (
    "Monitor Hacker News front page. Every cycle, check for AI-related posts and update a running "
    "summary."
)
CYCLE = timedelta(hours=8)
DAYS = {"sqlite": 31, "postgresql": 7}
SUMMARY = "memory/knowledge/hn_summary.md"
POSTS = 3
"""The number of posts on the front page: a new one each cycle, and the two before it."""


def front_page(number: int) -> str:
    return "\n".join(f"{n}: AI news number {n}" for n in range(number, max(number - POSTS, 0), -1))


@tool(effect="repeatable")
async def fetch_hn(ctx: RunContext) -> Answer:
    """Fetch the front page of Hacker News."""
    passed = (ctx.clock.now() - ctx.team.created_at) // CYCLE
    return Done(front_page(passed + 1))


def monitors(request: Request) -> Says:
    """A monitor that knows earlier cycles only from its notes."""
    turns = list(request.transcript.spoken())
    said = [turn.text for turn in turns if turn.role == "tool"]
    match len(said):
        case 0:
            return says(call("fetch_hn"), call("read_file", path=SUMMARY))
        case 2:
            page, before = said
            known = "" if "There is no" in before else before.strip() + "\n"
            fresh = [line for line in page.splitlines()[::-1] if line not in known.splitlines()]
            lines = "".join(f"{line}\n" for line in fresh)
            cycle = re.search(r"Cycle (\d+)", turns[0].text)
            note = f"memory/experiences/cycle-{cycle[1] if cycle else 1}.md"
            return says(
                call("write_file", path=SUMMARY, content=known + lines),
                call("write_file", path=note, content=f"reported:\n{lines}"),
                call("checkpoint", summary=f"reported {len(fresh)} new"),
            )
        case _:
            return says(call("finish", summary="The summary is up to date."))


async def pass_cycle(world: World) -> None:
    world.clock.advance(seconds=CYCLE.total_seconds())
    await world.store.write(fire_due)
    await world.settle()


def count_timers(tx: Tx) -> int:
    row = tx.one("select count(*) from timers")
    return 0 if row is None else int(row[0])


async def test_a_monitor_runs_in_cycles_for_a_month_and_stops(
    tmp_path: Path, database_url: str
) -> None:
    world = World(tmp_path / "home", database_url=database_url, tools=(fetch_hn,))
    world.model("ada", ReactiveModel("scripted/ada", monitors))
    await world.start()
    founded = await world.found(GOAL, mode="infinite", heartbeat=CYCLE.total_seconds())
    await world.settle()
    home = tmp_path / "home" / "teams" / founded.team.id
    summaries = [(home / SUMMARY).read_text()]
    days = DAYS[database_url.partition(":")[0]]
    cycles = days * int(timedelta(days=1) / CYCLE)
    for number in range(1, cycles):
        await pass_cycle(world)
        summaries.append((home / SUMMARY).read_text())
        if number % 10 == 0:
            await world.restart()

    board = await world.board(founded.team.id)
    [heartbeat] = await world.store.read(rows.of_team, founded.team.id)
    # Each cycle was a node that completed with a checkpoint.
    assert len(board) == cycles
    assert {n.status for n in board} == {NodeStatus.COMPLETED}
    assert {(n.stop_reason, n.doubts) for n in board} == {(StopReason.FINISHED, None)}
    assert [n.source for n in board] == ["system"] + ["trigger"] * (cycles - 1)
    assert [n.title for n in board[1:]] == [f"Cycle {n}" for n in range(2, cycles + 1)]
    assert all(n.parent_id is None and n.checkpoint == "reported 1 new" for n in board)
    assert "reported 1 new" in board[-1].task  # the checkpoint of the cycle before
    assert (heartbeat.fired, heartbeat.skipped) == (cycles - 1, 0)
    # The summary was updated each cycle, and nothing was reported twice.
    assert len(set(summaries)) == cycles
    lines = summaries[-1].splitlines()
    assert lines == [f"{n}: AI news number {n}" for n in range(1, cycles + 1)]
    # memory/ has notes from each cycle.
    notes = {path.name: path.read_text() for path in (home / "memory/experiences").iterdir()}
    assert notes == {
        f"cycle-{n}.md": f"reported:\n{n}: AI news number {n}\n" for n in range(1, cycles + 1)
    }
    cost = await world.store.read(rows.cost, heartbeat.id)
    total = sum(row.calls for row in await world.store.read(spend.of_team, founded.team.id))
    assert (cost.calls, total) == (3 * (cycles - 1), 3 * cycles)

    # It stops on request, and stays stopped.
    await world.store.write(teams.stop, founded.team.id)
    await world.settle()
    [heartbeat] = await world.store.read(rows.of_team, founded.team.id)
    assert (heartbeat.status, heartbeat.ended) == ("expired", "the team was stopped")
    await world.restart()
    for _ in range(3):
        await pass_cycle(world)
    assert len(await world.board(founded.team.id)) == cycles
    assert await world.store.read(count_timers) == 0
    ends = [e.type for e in await world.events(founded.team.id)][-2:]
    assert ends == ["team.stopped", "trigger.ended"]
    await world.stop()


async def test_a_cycle_that_waits_for_a_person_is_cancelled_when_the_team_stops(
    tmp_path: Path, database_url: str
) -> None:
    async with World(tmp_path / "home", database_url=database_url, tools=(fetch_hn,)) as world:
        look = says(call("fetch_hn"))
        held = world.script("ada", look, says(call("finish", summary="first")), look)
        founded = await world.found(GOAL, mode="infinite", heartbeat=30)
        await world.settle()
        held.lines.append(says(call("ask_human", question="Is this AI?")))
        world.clock.advance(seconds=30)
        await world.store.write(fire_due)
        await world.settle()
        assert len(await world.questions(founded.team.id)) == 1

        await world.store.write(teams.stop, founded.team.id)
        await world.settle()
        statuses = [n.status for n in await world.board(founded.team.id)]
        assert statuses == [NodeStatus.COMPLETED, NodeStatus.CANCELLED]
        world.clock.advance(days=1)
        await world.store.write(fire_due)
        await world.settle()
        assert len(await world.board(founded.team.id)) == 2
