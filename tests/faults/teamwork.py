"""Teamwork: a sweep scenario with three levels, two stages, background work and messages."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agiraph.core.domain.chat import Turn
from agiraph.models.base import Request
from agiraph.testing import Says, call, says
from tests.faults.invariants import EFFECTS, Ledger, database
from tests.faults.scenarios import found_team_once, step, world_of
from tests.services.stages import judges

NEW_AGENT = "new:scripted/ada"


def _assignment(request: Request) -> str:
    return next(t.text for t in request.transcript.turns if t.ref == "assignment")


def _created(request: Request) -> list[str]:
    """Return the ids of the nodes that this thread has created, in order."""
    tools = [t.text for t in request.transcript.turns if t.role == "tool"]
    return [found[1] for text in tools if (found := re.match(r"Created (node_\w+)", text))]


def _in_background(request: Request) -> str:
    tools = [t.text for t in request.transcript.turns if t.role == "tool"]
    found = [m[1] for text in tools if (m := re.search(r"in the background as (node_\w+)", text))]
    return found[0]


def _last_tool(request: Request) -> str:
    return next(t.text for t in reversed(request.transcript.turns) if t.role == "tool")


def _coordinate(request: Request) -> Says:
    calls = [c.name for t in request.transcript.turns for c in t.calls]
    if not calls:
        return says(
            call("create_work_node", task="Part one", title="one", assigned_to=NEW_AGENT),
            call("create_work_node", task="Part two", title="two"),
            call("assign_task", agent=NEW_AGENT, task="Aside", description="aside",
                 run_in_background=True),
        )  # fmt: skip
    if _last_tool(request).startswith("Interrupted"):
        return says(call("start_stage", name="s", nodes=_created(request)))
    match calls[-1]:
        case "assign_task":
            return says(call("start_stage", name="s", nodes=_created(request)))
        case "start_stage":
            return says(judges("both are there", _last_tool(request)))
        case "reconvene":
            [first, _] = _created(request)
            return says(
                call("create_work_node", task="Part three", title="three", refs={"one": first},
                     depends_on=[_in_background(request)], if_unmet="go_on"),
            )  # fmt: skip
        case "create_work_node":
            return says(call("task_output", id=_created(request)[-1], blocking=True))
        case _:
            return says(call("finish", summary="all parts are there"))


def _part(request: Request) -> Says:
    """Play a worker of the second level, which delegates a part and reports it."""
    match step(request):
        case 0:
            return says(
                call("assign_task", agent=NEW_AGENT, task="A leaf", description="leaf"),
                call("send_message", to="coordinator", content=f"begun {_title(request)}"),
            )
        case 1:
            return says(call("write_file", path="draft.md", content="half and whole"))
        case _:
            return says(call("publish", summary=f"done {_title(request)}"))


def _title(request: Request) -> str:
    found = re.search(r"Id: (node_\w+)", _assignment(request))
    return found[1] if found else ""


def _leaf(request: Request) -> Says:
    if step(request) == 0:
        return says(call("write_file", path="draft.md", content="half and whole"))
    return says(call("publish", summary=f"leaf {_title(request)}"))


def react(request: Request) -> Says:
    said = _assignment(request)
    if "Do the work" in said:
        return _coordinate(request)
    if "[Message from" in said:
        return says(call("publish", summary="heard"))
    return _part(request) if "Part one" in said or "Part two" in said else _leaf(request)


async def teamwork(home: Path) -> None:
    world = await world_of(home, react)
    await found_team_once(world)
    await world.settle()
    await world.stop()


# ---- a program as a teammate ---------------------------------------------------------------


def _program(home: Path) -> str:
    """Return a program that notes each start, reports, waits until the report was sent, submits."""
    node = '$(basename "$(dirname "$PWD")")'
    ledger = home.parent / "ledger"
    return (
        f'cli:echo "program {node}" >> {EFFECTS}; '
        f'echo "@coordinator: half way {node}" >> _outbox.md; '
        f'until grep -q "^sent {node}" {ledger}; do sleep 0.02; done; '
        "printf 'the draft\\n' > draft.md; echo done > _result.md"
    )


async def program(home: Path) -> None:
    """Let the coordinator assign a task to a program, and again if the program was interrupted."""

    def hire(request: Request) -> Says:
        turns = request.transcript.turns
        since = [t.text for t in turns[_last_reply(turns) :]]
        if not any(turn.calls for turn in turns) or "was cut off" in " ".join(since):
            task = "Write the draft"
            return says(call("assign_task", agent=_program(home), task=task, description="draft"))
        if (found := re.search(r"half way (node_\w+)", " ".join(since))) is not None:
            return says(call("task_output", id=found[1], blocking=True))
        return says(call("finish", summary="the draft is there"))

    world = await world_of(home, hire)
    watching = asyncio.create_task(_note_sent(home))
    await found_team_once(world)
    await world.settle()
    watching.cancel()
    await world.stop()


async def _note_sent(home: Path) -> None:
    """Tell the program by the ledger that its report is stored; no fault point is added by this."""
    noted = set[str]()
    with closing(database(home)) as db:
        while True:
            told = db.execute("select text from messages where text like 'half way node_%'")
            sent = {row["text"].split()[-1] for row in told}
            for node in sent - noted:
                Ledger(home).note("sent", node)
            noted = sent
            await asyncio.sleep(0.02)


def program_ran_once(home: Path) -> Iterator[str]:
    """I5 for programs: at most one start per task; an interrupted task fails."""
    ran = Counter(Ledger(home).all("program"))
    with closing(database(home)) as db:
        for row in db.execute(
            "select n.id, n.status from nodes n join agents a on a.id = n.assignee_id"
            " where a.kind = 'cli'"
        ):
            if ran[row["id"]] > 1:
                yield f"I5: the program of {row['id']} was started {ran[row['id']]} times"
            if row["status"] == "completed" and ran[row["id"]] == 0:
                yield f"I5: {row['id']} is completed and its program never ran"
            lines = db.execute(
                "select count(*) from messages where text like ?", (f"%half way {row['id']}%",)
            ).fetchone()[0]
            if lines != 1 and row["status"] == "completed":
                yield f"I6: the message of {row['id']} was delivered {lines} times"


def _last_reply(turns: list[Turn]) -> int:
    return max((n for n, turn in enumerate(turns) if turn.role == "assistant"), default=-1) + 1
