"""Endings: a sweep scenario with words that park, refused endings, and a task that is extended."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agiraph.models.base import Request
from agiraph.testing import Says, call, says
from tests.faults.invariants import database
from tests.faults.scenarios import found_team_once, world_of

NEW_AGENT = "new:scripted/ada"
TURNS = 2


def _called(request: Request) -> list[str]:
    return [c.name for turn in request.transcript.turns for c in turn.calls]


def _told(request: Request) -> str:
    return "\n".join(t.text for t in request.transcript.turns if t.role in ("user", "tool"))


def _coordinate(request: Request) -> Says:
    called, told = _called(request), _told(request)
    if "create_work_node" not in called:
        return says(
            call("set_acceptance", lines=["`report.md` tells the draft"]),
            call("create_work_node", task="Write the draft", title="draft", max_turns=TURNS,
                 assigned_to=NEW_AGENT),
        )  # fmt: skip
    if "Status: partial" in told and "extend_task" not in called:
        [node] = set(re.findall(r"Id: (node_\w+)", told))
        return says(call("extend_task", id=node, turns=5))
    if "the draft is there" not in told:
        return says("I am waiting for the draft.")
    if "write_file" not in called:
        return says(
            call("write_file", path="report.md", content="the report\n"),
            call("finish", summary="Too early."),
        )
    return says(call("finish", summary="All done: report.md.", evidence=["file:report.md"]))


def _draft(request: Request) -> Says:
    """A worker that needs more turns than it has at first."""
    called = _called(request)
    if not request.may_call:
        return says("Half of the draft.")
    if called.count("checkpoint") < TURNS:
        return says(call("checkpoint", summary=f"step {called.count('checkpoint')}"))
    if "write_file" not in called:
        return says(call("write_file", path="draft.md", content="the draft\n"))
    return says(call("publish", summary="the draft is there: draft.md"))


def react(request: Request) -> Says:
    first = next(t.text for t in request.transcript.turns if t.ref == "assignment")
    return _coordinate(request) if "Do the work" in first else _draft(request)


async def endings(home: Path) -> None:
    world = await world_of(home, react)
    await found_team_once(world, acceptance=())
    await world.settle()
    await world.stop()


def after_recovery(home: Path) -> Iterator[str]:
    """Check that each ending happened once: the refused one, the partial one, the extension."""
    with closing(database(home)) as db:
        yield from _happened_once(db)
        for row in db.execute("select id, result from nodes"):
            if row["result"] in ("Too early.", "I am waiting for the draft."):
                yield f"{row['id']} completed with {row['result']!r}"


def _happened_once(db: sqlite3.Connection) -> Iterator[str]:
    for type in ("node.partial", "node.extended"):
        [times] = db.execute("select count(*) from story where type = ?", (type,)).fetchone()
        if times != 1:
            yield f"{type} happened {times} times"
    [completed] = db.execute("select count(*) from story where type = 'node.completed'").fetchone()
    if completed != 2:
        yield f"{completed} nodes completed"
