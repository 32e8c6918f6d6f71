"""Stopping: sweep scenarios in which a task and then the whole team are stopped while words of a
teammate and of the person are unread, and the team gets a new goal; or it is stopped in the middle
of its work and starts again."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import endings, restarts, teams
from agiraph.core.services.mail import bus
from agiraph.core.store import teams as rows
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.faults.invariants import STOPPED, Ledger, database
from tests.faults.scenarios import command, found_team_once, step, world_of
from tests.services.teams import created_ids

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


async def restarting(home: Path) -> None:
    """Stop a team whose coordinator and worker wait for the person, and start it again."""

    def begin(request: Request) -> Says:
        task = next(t.text for t in request.transcript.turns if t.ref == "assignment")
        is_lead, at = "Do the work" in task, step(request)
        if at == 0 and is_lead:
            return says(
                call("spawn_worker", name="bob", model="scripted/ada"),
                call("create_work_node", task="A part", title="part", assigned_to="bob"),
            )
        if at == 0:
            return says(call("bash", command=command(home, "part" if "A part" in task else "rest")))
        if at == 1 and is_lead:
            needed = created_ids(request)
            return says(call("create_work_node", task="The rest", depends_on=needed))
        if at == 1 + is_lead and "The rest" not in task:
            return says(call("ask_human", question="which door" if is_lead else "which gap"))
        return says(call("finish" if is_lead else "publish", summary=f"done after {at}"))

    world = await world_of(home, begin)
    await found_team_once(world)
    await world.settle()
    [team] = await world.teams()
    if "team.stopped" not in {event.type for event in await world.events(team.id)}:
        await world.store.write(teams.stop, team.id, by=OWNER)
        await world.settle()
    if (await world.team(team.id)).status == "stopped":
        await world.store.write(restarts.resume, team.id, by=OWNER)
    await world.settle()
    await world.stop()


def after_restart(home: Path) -> Iterator[str]:
    """Check that all work was done, and that the journal tells once of each start of it anew."""
    with closing(database(home)) as db:
        for row in db.execute("select task, status from nodes where status <> 'completed'"):
            yield f"{row['task']!r} is {row['status']}"
        for row in db.execute(
            "select json_extract(data, '$.node_id') as node_id, count(*) as times from story"
            " where json_extract(data, '$.by') is not null and type <> 'node.cancelled'"
            " group by node_id having times <> 1"
        ):
            yield f"{row['node_id']} started again {row['times']} times"
