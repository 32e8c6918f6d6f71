"""Life: a sweep scenario with chat, work, reflection, a briefing, research and a schedule."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from agiraph.core.domain.ids import AgentId
from agiraph.core.domain.records.search import Hit
from agiraph.core.services.lifecycle import timers
from agiraph.core.services.triggers import definitions
from agiraph.core.store import teams as rows
from agiraph.core.store import triggers as trigger_rows
from agiraph.core.store.tx import Tx
from agiraph.models.base import Request
from agiraph.testing import ManualClock, Says, World, call, says
from agiraph.web.access import Web
from agiraph.web.search import LocalEngine
from tests.faults.invariants import Ledger, database
from tests.faults.scenarios import counting_model, found_team_once, step

START = datetime.fromisoformat("2026-01-05T09:30:00+00:00")
SLOTS = 2
SAID = ("Count the beans", "Many thanks", "Find out about beans")


def _last(request: Request) -> str:
    return next(t.text for t in reversed(request.transcript.turns) if t.role == "user")


def _reply(request: Request) -> Says:
    if "thanks" in _last(request):
        return says(
            "Gladly.",
            call("remember", content="They say thanks."),
            call("no_work_needed"),
        )
    if "Find out" in _last(request):
        return says("I look into it.", call("research_start", goal="How do beans come?"))
    return says(f"I'll do it: {_last(request)}")


def _reflect(request: Request) -> Says:
    if "worth keeping" in _last(request):
        kept = {"type": "fact", "content": "Beans come in bags of ten.", "confidence": 0.8}
        return says(json.dumps({"insights": [{**kept, "work": 1}]}))
    told = _last(request).count("bags of")
    briefing = {"score": 0.9, "title": f"Beans {told}", "text": f"Bags of ten it is. {told}"}
    return says(json.dumps(briefing))


def react(request: Request) -> Says:
    system = request.transcript.system
    if "You are talking with the human" in system:
        return _reply(request)
    if "now look back on it" in system:
        return _reflect(request)
    if system.startswith("You plan the work on a research"):
        return says(json.dumps({"question": "How do beans come?", "kind": "fact"}))
    if system.startswith("You read the web"):
        if step(request) == 0:
            return says(call("web_search", query="beans in bags"))
        return says(call("done"))
    if step(request) == 0:
        return says(call("checkpoint", summary="half way"))
    return says(call("finish", summary=f"done in {request.transcript.turns[0].thread_id}"))


def _now(home: Path) -> datetime:
    noted = Ledger(home).all("clock")
    return datetime.fromisoformat(noted[-1]) if noted else START


def _schedule_once(tx: Tx, agent_id: AgentId) -> None:
    if not trigger_rows.active_of_agent(tx, agent_id):
        definitions.create(
            tx,
            agent_id=agent_id,
            type="scheduled",
            config={"cron": "0 * * * *", "max_fires": SLOTS},
            payload={"task": "Look after the beans"},
        )


async def life(home: Path) -> None:
    Ledger(home).note("life")
    beans = Hit(title="About beans", url="http://example.org/beans", snippet="beans in bags")
    web = Web(engine=LocalEngine([beans]))
    world = World(home, clock=ManualClock(_now(home)), web=web, easy_endings=True)
    world.model("ada", counting_model(home, react))
    await world.start()
    await found_team_once(world, learns=True, start=False, mode="infinite")
    [team] = await world.teams()
    agent = (await world.store.read(rows.members, team.id))[0]
    await world.settle()
    for number, words in enumerate(SAID):
        said = await world.chat(agent.id, words, client_id=f"c{number}")
        Ledger(home).note("acknowledged", f"messages {said.id}")
        await world.settle()
    if _now(home) == START:
        await world.store.write(_schedule_once, agent.id)
    for slot in range(1, SLOTS + 1):
        moment = START + timedelta(hours=slot)
        if _now(home) < moment:
            Ledger(home).note("clock", moment.isoformat())
            world.clock.advance(seconds=(moment - world.clock.now()).total_seconds())
        await world.store.write(timers.fire_due)
        await world.settle()
    await world.stop()


def after_recovery(home: Path) -> Iterator[str]:
    """Check that each message, insight, slot, briefing and report was handled exactly once."""
    with closing(database(home)) as db:
        yield from _answered_once(db)
        yield from _learned_once(db)
        yield from _fired_once(db)
        yield from _briefed_once(db)
        yield from _reported_once(db)


def _answered_once(db: sqlite3.Connection) -> Iterator[str]:
    for row in db.execute("select * from messages where reply_id is not null"):
        [answers] = db.execute(
            "select count(*) from messages where sender <> 'human' and kind = 'message'"
            " and node_id = ?",
            (row["reply_id"],),
        ).fetchone()
        if answers != 1:
            yield f"{row['text']!r} was answered {answers} times"
        [tasks] = db.execute(
            "select count(*) from nodes where lane = 'work' and task = ?", (row["text"],)
        ).fetchone()
        if tasks != int(row["text"].startswith("Count")):
            yield f"{row['text']!r} became a node {tasks} times"
    [said] = db.execute("select count(*) from messages where sender = 'human'").fetchone()
    if said != len(SAID):
        yield f"{said} messages of the person are stored"
    [known] = db.execute("select count(*) from memories").fetchone()
    if known != 1:
        yield f"the memory is stored {known} times"


def _learned_once(db: sqlite3.Connection) -> Iterator[str]:
    for row in db.execute(
        "select t.* from threads t join agents a on a.id = t.agent_id"
        " where t.kind = 'work' and a.persistent"
    ):
        if row["closed_at"] is None or row["harvested_at"] is None:
            yield f"{row['id']} was not reflected on"
    active = Counter(
        row["content"] for row in db.execute("select * from insights where status = 'active'")
    )
    yield from (f"{content!r} is stored {n} times" for content, n in active.items() if n != 1)
    by_thread = Counter(
        (row["source_thread_id"], row["content"]) for row in db.execute("select * from insights")
    )
    yield from (f"{key} was learned {n} times" for key, n in by_thread.items() if n != 1)


def _fired_once(db: sqlite3.Connection) -> Iterator[str]:
    rows = db.execute(
        "select f.* from firings f join triggers t on t.id = f.trigger_id"
        " where t.type = 'scheduled'"
    ).fetchall()
    recorded = sum(row["count"] for row in rows)
    if recorded != SLOTS:
        yield f"I10: {recorded} of {SLOTS} slots are recorded: {[dict(r) for r in rows]}"
    nodes = Counter(row["node_id"] for row in rows if row["node_id"])
    yield from (f"I10: {node} belongs to {n} slots" for node, n in nodes.items() if n != 1)
    [made] = db.execute(
        "select count(*) from nodes n join triggers t on t.id = n.trigger_id"
        " where t.type = 'scheduled' and n.lane = 'work'"
    ).fetchone()
    if made != sum(row["outcome"] == "fired" for row in rows):
        yield f"I10: {made} nodes for {len(rows)} firings"


def _briefed_once(db: sqlite3.Connection) -> Iterator[str]:
    for row in db.execute(
        "select node_id, count(*) as n from messages where kind = 'briefing' group by node_id"
    ):
        if row["n"] != 1:
            yield f"{row['node_id']} sent {row['n']} briefings"


def _reported_once(db: sqlite3.Connection) -> Iterator[str]:
    [made] = db.execute("select count(*) from nodes where title like 'Research:%'").fetchone()
    [reports] = db.execute("select count(*) from messages where kind = 'report'").fetchone()
    [told] = db.execute(
        "select count(*) from messages where kind = 'message'"
        " and text like 'The research found nothing%'"
    ).fetchone()
    if (made, reports, told) != (1, 1, 1):
        yield f"{made} research nodes, {reports} reports, {told} chat messages about them"
