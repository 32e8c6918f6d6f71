"""Waits: a sweep scenario in which a message ends the wait for a stage, the stage ends while its
coordinator waits for a teammate's answer, and the answer comes after it."""

import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from agiraph.models.base import Request
from agiraph.testing import Says, call, says
from tests.faults.invariants import STOPPED, Ledger, database
from tests.faults.scenarios import found_team_once, step, world_of
from tests.services.stages import judges
from tests.services.teams import created_ids

NEW_AGENT = "new:scripted/ada"
OVER = "Stage 's' is over"


def _coordinate(request: Request) -> Says:
    called = [c.name for turn in request.transcript.turns for c in turn.calls]
    told = [t.text for t in request.transcript.turns if t.text.startswith(OVER)]
    if not called:
        return says(
            call("spawn_worker", name="three", model="scripted/ada"),
            call("create_work_node", task="Part one", title="one", assigned_to=NEW_AGENT),
            call("create_work_node", task="Part two", title="two", assigned_to=NEW_AGENT),
        )
    if "start_stage" not in called:
        return says(call("start_stage", name="s", nodes=created_ids(request)))
    if "send_message" not in called:
        asked = f"What came of {' and '.join(created_ids(request))}?"
        return says(call("send_message", to="three", content=asked, kind="question"))
    if not told:
        return says("I wait for the stage.")
    if "reconvene" not in called:
        return says(judges("both are there", told[-1]))
    return says(call("finish", summary="all parts are there"))


def _part(request: Request, task: str) -> Says:
    """Play a worker; the first tells the coordinator, at once, that it has begun."""
    begins = [call("send_message", to="coordinator", content="I have begun", kind="urgent")]
    steps = [says(*begins)] if "Part one" in task else []
    steps.append(says(call("write_file", path="draft.md", content="half and whole")))
    at = step(request)
    return steps[at] if at < len(steps) else says(call("publish", summary="a part"))


def _answer(home: Path, request: Request, task: str) -> Says:
    """Play the teammate that is asked: it waits for both parts, then answers. The end of the goal
    may cancel what it does after that."""
    [asked] = re.findall(r"What came of .*\?", task)
    match step(request):
        case 0:
            ids = re.findall(r"node_\w+", asked)
            return says(*[call("task_output", id=node, blocking=True) for node in ids])
        case 1:
            Ledger(home).note(STOPPED, request.transcript.turns[-1].node_id or "")
            return says(call("send_message", to="coordinator", content=f"answer to {asked}"))
        case _:
            return says(call("publish", summary="answered"))


def _react(home: Path, request: Request) -> Says:
    task = next(t.text for t in request.transcript.turns if t.ref == "assignment")
    if "Do the work" in task:
        return _coordinate(request)
    return _answer(home, request, task) if "What came of" in task else _part(request, task)


async def waits(home: Path) -> None:
    world = await world_of(home, partial(_react, home))
    await found_team_once(world)
    await world.settle()
    await world.stop()


def after_recovery(home: Path) -> Iterator[str]:
    """Check that the end of the stage and the answer each reached the coordinator once, and that
    it was not told that there is no answer."""
    with closing(database(home)) as db:
        for what, wanted in ((OVER, 1), ("answer to What came of", 1), ("gave no answer", 0)):
            [times] = db.execute(
                "select count(*) from journal t join threads h on h.id = t.thread_id"
                " join agents a on a.id = h.agent_id where a.role = 'coordinator'"
                " and t.role in ('user', 'tool') and t.text like ?",
                (f"%{what}%",),
            ).fetchone()
            if times != wanted:
                yield f"{what!r} reached the coordinator {times} times"
