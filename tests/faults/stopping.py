"""Stopping: a sweep scenario in which a task and then the whole team are stopped while words of a
teammate and of the person are unread, and the team gets a new goal."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.messages import Draft
from agiraph.core.services.lifecycle import endings, teams
from agiraph.core.services.mail import bus
from agiraph.core.store import teams as rows
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.faults.invariants import STOPPED, Ledger, database
from tests.faults.scenarios import found_team_once, world_of

AGAIN = "Do it again"
TO_WORKER = ("mind the gap of the teammate", "mind the gap of the person")
TO_LEAD = ("the door is open", "the window is open")


def react(request: Request) -> Says:
    task = next(t.text for t in request.transcript.turns if t.ref == "assignment")
    called = [c.name for turn in request.transcript.turns for c in turn.calls]
    if AGAIN in task:
        return says(call("finish", summary="done again"))
    if "Do the work" in task and not called:
        return says(
            call("spawn_worker", name="bob", model="scripted/ada"),
            call("create_work_node", task="A part", title="part", assigned_to="bob"),
        )
    if "gap of" in task:
        return says(call("publish", summary=f"heard {len(task)}"))
    return says(call("ask_human", question="which door" if "Do the work" in task else "which gap"))


async def stopping(home: Path) -> None:
    world = await world_of(home, react)
    await found_team_once(world)
    await world.settle()
    [team] = await world.teams()
    lead, worker = sorted(await world.store.read(rows.members, team.id), key=lambda a: a.role)
    if team.goal != AGAIN:
        await _stop_task(world, lead, worker)
        await world.settle()
        await _stop_team(world, lead, worker)
    await world.settle()
    await world.stop()


async def _stop_task(world: World, lead: Agent, worker: Agent) -> None:
    """Stop the task while its worker waits for the person and has read neither message."""
    sent = {"team_id": lead.team_id, "recipient": worker.id}
    by_lead = {"sender": lead.id, "text": TO_WORKER[0], "client_id": "c1"}
    await world.store.write(bus.send, Draft(**sent, **by_lead))
    await world.say(worker.id, TO_WORKER[1], team_id=lead.team_id, client_id="c2")
    [part] = [node for node in await world.board(lead.team_id) if node.title == "part"]
    Ledger(world.path).note(STOPPED, part.id)
    await world.store.write(endings.cancel, part.id)


async def _stop_team(world: World, lead: Agent, worker: Agent) -> None:
    """Stop the team while its coordinator waits and has read neither message."""
    by_worker = {"sender": worker.id, "text": TO_LEAD[0], "client_id": "c3"}
    await world.store.write(bus.send, Draft(team_id=lead.team_id, recipient=lead.id, **by_worker))
    await world.say(lead.id, TO_LEAD[1], team_id=lead.team_id, client_id="c4")
    for node in await world.board(lead.team_id):
        if not node.status.is_final:
            Ledger(world.path).note(STOPPED, node.id)
    if (await world.teams())[0].status == "active":
        await world.store.write(teams.stop, lead.team_id)
    await world.store.write(teams.set_goal, lead.team_id, AGAIN, acceptance=("answer",))


def after_recovery(home: Path) -> Iterator[str]:
    """Check that each of the words was read once: before the stop, as the work that they became, or
    in the work on the next goal. The answer to a question that they interrupted quotes them, too.
    """
    with closing(database(home)) as db:
        for words in (*TO_WORKER, *TO_LEAD):
            [read] = db.execute(
                "select count(*) from journal where role = 'user' and text like ?",
                (f"%{words}%",),
            ).fetchone()
            if read != 1:
                yield f"{words!r} was read {read} times"
