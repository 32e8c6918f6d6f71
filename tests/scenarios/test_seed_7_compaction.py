"""Seed scenario 7: ten subjects in a small context window; compaction loses nothing."""

import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

from agiraph import faultpoints
from agiraph.core.domain.chat import Turn
from agiraph.core.domain.work import Budget, NodeStatus
from agiraph.models.base import Request
from agiraph.models.facts.prices import Prices, Terms
from agiraph.testing import Call, Says, World, call, says
from agiraph.testing.clock import ManualClock
from agiraph.testing.scripted import ReactiveModel
from agiraph.testing.sweep import Sweep
from tests.doubts import doubts_of
from tests.faults.invariants import Ledger
from tests.faults.scenarios import scenario
from tests.local_web import Page, local_web
from tests.scenarios.endings import defines

SUBJECTS = [f"startup {letter}" for letter in "ABCDEFGHIJ"]
DONE = "there is a file about each of the ten"
COUNT = "test $(ls *.md | wc -l) -eq 10"
WINDOW = 6_000
PAGE = "They build something. " * 80
SITES = {
    f"{subject.replace(' ', '-').lower()}.example": {"/": Page(f"# {subject}\n\n{PAGE}", subject)}
    for subject in SUBJECTS
}


def research(home: Path, request: Request) -> Says:
    """A model that knows only what it is shown."""
    turns = list(request.transcript.spoken())
    shown = sum(len(t.text) + len(str(t.calls)) for t in turns) + len(request.transcript.system)
    tokens = {"input_tokens": shown // 4, "output_tokens": 30}
    last = turns[-1]
    done = [
        s for s in SUBJECTS if any(f"{s}.md" in t.text or f"{s}.md" in str(t.calls) for t in turns)
    ]
    if last.ref and last.ref.startswith("flush:"):
        notes = call(
            "write_file", path="agents/coordinator/NOTEBOOK.md", content="Done: " + ", ".join(done)
        )
        return says("Writing it down.", notes, **tokens)
    if last.ref and last.ref.startswith("compact:"):
        return says("Researched so far: " + ", ".join(f"{s}.md" for s in done), **tokens)
    if len(turns) == 1:
        return says(defines(DONE), **tokens)
    left = [s for s in SUBJECTS if s not in done]
    if not left and COUNT not in str(turns[-2].calls):
        return says(call("bash", command=COUNT), **tokens)
    if not left:
        summary = "All ten: " + ", ".join(done)
        return says(call("finish", summary=summary, evidence=[f"ran:{COUNT}"]), **tokens)
    return says(_next_step(home, left[0], turns), **tokens)


def _next_step(home: Path, subject: str, turns: Sequence[Turn]) -> Call:
    """Search for a subject, read the page that was found, and write down what it says."""
    asked = [call.name for turn in turns[-2:] for call in turn.calls]
    found = re.findall(rf"{subject}\n   (http\S+)$", turns[-1].text, re.MULTILINE)
    if asked == ["web_search"] and found:
        return call("web_fetch", url=found[0])
    if asked == ["web_fetch"] and PAGE.strip() in turns[-1].text:
        Ledger(home).note("researched", subject)
        return call("write_file", path=f"{subject}.md", content=f"# {subject}\n{PAGE}")
    return call("web_search", query=subject)


async def run_scenario(home: Path, url: str = "") -> None:
    prices = Prices({"own": Terms(window=WINDOW)})
    clock = ManualClock()
    async with local_web(clock, SITES) as served:
        world = World(home, prices=prices, database_url=url, clock=clock, web=served.access)
        world.model("ada", ReactiveModel("scripted/ada", lambda request: research(home, request)))
        async with world:
            if not await world.teams():
                await world.found("Analyse the top ten startups", budget=Budget(turns=80))
            await world.settle()


async def check(home: Path, url: str = "") -> None:
    async with World(home, database_url=url) as world:
        [team] = await world.teams()
        [goal] = await world.board(team.id)
        assert (goal.status, goal.result, doubts_of(goal)) == (
            NodeStatus.COMPLETED,
            "All ten: " + ", ".join(SUBJECTS),
            None,
        )
        assert sorted(world.published(goal)) == sorted(f"{s}.md" for s in SUBJECTS)
        cuts = [e for e in await world.events(team.id) if e.type == "thread.compacted"]
        assert len(cuts) >= 2
        turns = await world.turns(goal.id)
        # Every turn is still stored.
        assert all(
            any(f"# {s}\n\n{PAGE.strip()}" in t.text for t in turns if t.role == "tool")
            for s in SUBJECTS
        )
        assert await world.inbox() == [m for m in await world.inbox() if m.kind == "result"]
        notes = home / "teams" / team.id / "agents" / "coordinator" / "NOTEBOOK.md"
        assert notes.read_text().startswith("Done: startup A")
        assert all(t.usage.input_tokens < WINDOW for t in turns)


async def test_compaction_repeats_no_work_and_loses_no_result(
    tmp_path: Path, database_url: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    await run_scenario(home, database_url)
    await check(home, database_url)
    assert Ledger(home).all("researched") == SUBJECTS


def test_a_kill_during_a_compaction_loses_nothing(tmp_path: Path) -> None:
    """Kill at every other fault point between the first flush and the first compaction."""
    import asyncio

    sweep = Sweep(scenario("compaction", run_scenario, lambda: None))
    counted = tmp_path / "count"
    points = _fault_points(sweep, counted)
    first, last = points.index("db:before:compact"), points.index("db:after:compact")
    for k in range(max(1, first - 10), last + 4, 2):
        home = tmp_path / f"kill{k}" / "home"
        home.mkdir(parents=True)
        assert sweep._life(home, _kill_at(k)) == -signal.SIGKILL
        assert sweep._life(home, None) == 0
        asyncio.run(check(home))
        assert set(Ledger(home).all("researched")) == set(SUBJECTS)


def _kill_at(k: int):
    passed = 0

    def count(_: str) -> None:
        nonlocal passed
        passed += 1
        if passed == k:
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def _fault_points(sweep: Sweep, root: Path) -> list[str]:
    home = root / "home"
    home.mkdir(parents=True)
    log = root / "points"

    def note(point: str) -> None:
        with log.open("a") as file:
            file.write(point + "\n")

    assert sweep._life(home, note) == 0
    assert faultpoints.armed is None
    return log.read_text().splitlines()
