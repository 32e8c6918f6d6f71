"""Reflection: a sweep scenario of an agent that works, reflects and briefs through a channel."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from agiraph.core.domain.ids import SYSTEM
from agiraph.core.domain.messages import INBOX
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import teams
from agiraph.core.store import nodes
from agiraph.core.store import teams as rows
from agiraph.core.store.tx import Tx
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from agiraph.testing.sweep import Scenario
from tests.faults.invariants import Ledger, _dense, database, fingerprint

TASKS = ("watch the north", "watch the south")


class LedgerChannel:
    """A channel that writes to the ledger, which survives every crash."""

    kinds = INBOX
    description = "ledger"

    def __init__(self, home: Path) -> None:
        self._ledger = Ledger(home)

    async def send(self, outgoing: OutgoingMessage) -> None:
        self._ledger.note("told", f"{outgoing.key} {outgoing.message.text}")


def _react(home: Path) -> Callable[[Request], Says]:
    def react(request: Request) -> Says:
        Ledger(home).note("llm")
        turns = list(request.transcript.spoken())
        seen = re.findall("watch the (north|south)", "\n".join(turn.text for turn in turns))
        match (turns[-1].ref or "").partition(":")[0]:
            case "harvest":
                insight = {"type": "fact", "content": f"The {seen[-1]} is calm", "confidence": 1}
                return says(json.dumps({"insights": [{**insight, "work": 1}]}))
            case "briefing":
                text = f"All who live in the {seen[-1]} sleep soundly tonight"
                return says(json.dumps({"score": 0.9, "title": seen[-1], "text": text}))
            case _:
                return says(call("finish", summary=f"watched the {seen[-1]}"))

    return react


def _create_once(tx: Tx, task: str) -> None:
    [team] = rows.every(tx)
    [agent] = rows.members(tx, team.id)
    if all(node.task != task for node in nodes.board(tx, team.id)):
        planning.create(
            tx,
            team_id=team.id,
            task=task,
            source="trigger",
            creator_id=SYSTEM,
            assignee_id=agent.id,
        )


async def watch_and_reflect(home: Path) -> None:
    Ledger(home).note("life")
    world = World(home, features={"channels": {"told": LedgerChannel(home)}}, easy_endings=True)
    world.model("ada", ReactiveModel("scripted/ada", _react(home)))
    await world.start()
    if not await world.teams():
        await world.store.write(
            teams.create,
            owner_id=OWNER,
            goal="Watch",
            model="scripted/ada",
            mode="infinite",
            start=False,
        )
    for task in TASKS:
        await world.store.write(_create_once, task)
        await world.settle()
    await world.stop()


def at_kill(home: Path) -> Iterator[str]:
    if not (home / "agiraph.db").exists():
        return
    with closing(database(home)) as db:
        [verdict] = db.execute("pragma integrity_check").fetchone()
        if verdict != "ok":
            yield verdict
        if not db.execute("select 1 from sqlite_master where name = 'deliveries'").fetchone():
            return
        yield from _dense(db)
        for row in db.execute(
            "select id from threads t where harvested_at is not null and kind = 'work'"
            " and not exists (select 1 from insights i where i.source_thread_id = t.id)"
        ):
            yield f"{row['id']} is marked as harvested, and no insight of it is stored"
        for row in db.execute(
            "select id from messages m where recipient = 'human'"
            " and not exists (select 1 from deliveries d where d.message_id = m.id)"
        ):
            yield f"message {row['id']} has no delivery"


def after_recovery(home: Path) -> Iterator[str]:
    yield from at_kill(home)
    with closing(database(home)) as db:
        for row in db.execute("select id, lane, status from nodes where status <> 'completed'"):
            yield f"{row['lane']} {row['id']} is left {row['status']}"
        learned = Counter(r["content"] for r in db.execute("select content from insights"))
        if learned != Counter(f"The {w.split()[-1]} is calm" for w in TASKS):
            yield f"F8: the stored insights are {learned}"
        briefed = Counter(r["title"] for r in db.execute("select * from messages"))
        if briefed != Counter(w.split()[-1] for w in TASKS):
            yield f"the briefings are {briefed}"
        sent = {r["id"]: r["status"] for r in db.execute("select id, status from deliveries")}
        if set(sent.values()) != {"sent"}:
            yield f"not every delivery was sent: {sent}"
        [paid] = db.execute("select coalesce(sum(calls + lost), 0) from spend").fetchone()
        if paid < (made := len(Ledger(home).all("llm"))):
            yield f"{made} model calls were made and {paid} charged"
    told = Counter(line.partition(" ")[0] for line in Ledger(home).all("told"))
    crashes = len(Ledger(home).all("life")) - 1
    if set(told) != set(sent):
        yield f"the channel got {told}, the deliveries are {sent}"
    if sum(told.values()) > len(sent) + max(crashes, 0):
        yield f"the channel got {told} with {crashes} crashes"


def scenario() -> Scenario:
    return Scenario(
        name="reflection",
        live=watch_and_reflect,
        at_kill=at_kill,
        after_recovery=after_recovery,
        fingerprint=fingerprint,
    )
