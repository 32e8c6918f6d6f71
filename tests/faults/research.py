"""Research: a sweep scenario of a job with two readers, a look for gaps, a report and its check."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agiraph.core.store import teams as rows
from agiraph.models.base import Request
from agiraph.testing import ManualClock, Says, World, call, says
from tests.faults.invariants import Ledger, database
from tests.faults.scenarios import counting_model, found_team_once, step
from tests.local_web import Page, local_web

QUESTION = "Compare the two towers."
SITES = {
    "one.example": {"/": Page("# One\n\nThe first tower is 100 metres tall.\n", "One")},
    "two.example": {"/": Page("# Two\n\nThe second tower is 200 metres tall.\n", "Two")},
}
ASKED = {"first": "http://one.example/", "second": "http://two.example/"}
REPORT = (
    "## Answer\n\nOne is 100 metres tall [e{first}], the other 200 metres [e{second}].\n\n"
    "## Key findings\n\n- The first tower is 100 metres tall [e{first}].\n"
)


def react(request: Request) -> Says:
    system = request.transcript.system
    if "You are talking with the human" in system:
        return says("I look into it.", call("research_start", goal=QUESTION))
    if system.startswith("You plan the work on a research"):
        plan = [{"question": f"How tall is the {name} tower?"} for name in ASKED]
        return says(json.dumps({"question": QUESTION, "kind": "survey", "sub_questions": plan}))
    if system.startswith("You read the web"):
        return _read(request)
    if system.startswith("You check how far"):
        return says('{"missing": [], "next": []}')
    if system.startswith("You write the report"):
        shown = system.partition("# The evidence")[2]
        first = 1 if shown.index("The first") < shown.index("The second") else 2
        return says(REPORT.format(first=first, second=3 - first))
    return says('{"verdicts": [{"pair": 1, "verdict": "yes"}]}')


def _read(request: Request) -> Says:
    task = next(t.text for t in request.transcript.spoken() if t.role == "user")
    name = "first" if "first" in task.partition("It is a part of")[0] else "second"
    words = f"The {name} tower is {100 if name == 'first' else 200} metres tall."
    given = {"claim": words, "quote": words, "url": ASKED[name]}
    steps = [
        says(call("web_search", query=f"{name} tower")),
        says(call("web_fetch", url=ASKED[name])),
        says(call("note_evidence", **given)),
        says(call("done")),
    ]
    return steps[min(step(request), 3)]


async def research(home: Path) -> None:
    Ledger(home).note("life")
    clock = ManualClock()
    async with local_web(clock, SITES) as served:
        world = World(home, clock=clock, web=served.access, easy_endings=True)
        world.model("ada", counting_model(home, react))
        await world.start()
        await found_team_once(world, start=False)
        [team] = await world.teams()
        agent = (await world.store.read(rows.members, team.id))[0]
        said = await world.chat(agent.id, QUESTION, client_id="c1")
        Ledger(home).note("acknowledged", f"messages {said.id}")
        await world.settle()
        await world.stop()


def after_recovery(home: Path) -> Iterator[str]:
    """Check that the job has one report, and each finding and each part once."""
    with closing(database(home)) as db:
        yield from _counts(db)
        quotes = [row["quote"] for row in db.execute("select quote from evidence order by quote")]
        if len(quotes) != 2 or len(set(quotes)) != 2:
            yield f"the ledger holds {quotes}"
        numbers = [row["number"] for row in db.execute("select number from evidence")]
        if sorted(numbers) != [1, 2]:
            yield f"the entries are numbered {numbers}"
        for row in db.execute("select * from messages where kind = 'report'"):
            if "100 metres" not in row["text"] or "200 metres" not in row["text"]:
                yield f"the report lacks a finding: {row['text'][:300]}"


PARTS = ("research", "reader", "gaps", "writing", "support")


def _counts(db: sqlite3.Connection) -> Iterator[str]:
    parts = {
        row["kind"]: row["n"]
        for row in db.execute(
            f"select kind, count(*) as n from nodes where kind in {PARTS} group by kind"
        )
    }
    if parts != {"research": 1, "reader": 2, "gaps": 1, "writing": 1, "support": 1}:
        yield f"the job has these parts: {parts}"
    [reports] = db.execute("select count(*) from messages where kind = 'report'").fetchone()
    [told] = db.execute(
        "select count(*) from messages where text like 'The research is done%'"
    ).fetchone()
    if (reports, told) != (1, 1):
        yield f"{reports} reports, {told} chat messages about them"
    for row in db.execute(f"select id, status from nodes where kind in {PARTS}"):
        if row["status"] != "completed":
            yield f"{row['id']} is {row['status']}"
