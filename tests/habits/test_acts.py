"""Acts: whatever a rude reply does and says, nothing is lost, and nothing false stands under it."""

import logging
from collections.abc import Iterable
from pathlib import Path

import pytest

from agiraph.core.tools.base import Tool
from agiraph.core.tools.replies.foreground import FOREGROUND
from tests.conftest import SweepLog
from tests.habits import planted_in_replies
from tests.habits.acts import ACTS, LANGUAGES, WORDINGS, Run, State, runs
from tests.habits.rude_ends import violations
from tests.habits.rude_runs import stage
from tests.time_box import TimeBox

SAMPLE = 11
"""Runs of each state in `make test`: about 165 together."""
FEWEST = 220
"""Runs of each state in `make faults`, however little time there is: 3,300 together, with each act
in each state."""
A_WORLD = 200
"""Runs that share a world."""
MOST_PLANTED = len(ACTS)
"""Runs in which a planted fault must be caught: each act once, in the state that shows it."""


@pytest.mark.slow
@pytest.mark.parametrize("state", State)
async def test_a_rude_reply_loses_nothing_and_claims_nothing(
    state: State, tmp_path: Path, seed: int, sweep_log: SweepLog, caplog: pytest.LogCaptureFixture
) -> None:
    found = await _played(runs(state, seed=seed)[:SAMPLE], tmp_path)
    sweep_log.append(f"{len(found)} rude replies while {state}, seed {seed}")
    assert _report(found) == ""
    assert _errors(caplog) == []


@pytest.mark.long(share=0.01)
@pytest.mark.parametrize("state", State)
async def test_every_rude_reply_loses_nothing_and_claims_nothing(
    state: State,
    tmp_path: Path,
    seed: int,
    time_box: TimeBox,
    sweep_log: SweepLog,
    caplog: pytest.LogCaptureFixture,
) -> None:
    every, found = runs(state, seed=seed), dict[str, list[str]]()
    for start in range(0, len(every), A_WORLD):
        least = every[start : max(start, FEWEST)]
        if not least and not time_box.is_open:
            break
        batch = every[start : start + A_WORLD] if time_box.is_open else least[:A_WORLD]
        found |= await _played(batch, tmp_path / str(start))
    sweep_log.append(f"{len(found)} of {len(every)} rude replies while {state}, seed {seed}")
    assert _report(found) == ""
    assert _errors(caplog) == []
    assert len(found) >= FEWEST


@pytest.mark.slow
@pytest.mark.parametrize("name", planted_in_replies.ALL)
async def test_a_fault_planted_in_replies_is_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep_log: SweepLog
) -> None:
    fault = planted_in_replies.ALL[name]
    tried = [run for run in runs(fault.where) if fault.act in run.act][:MOST_PLANTED]
    fault.arm(monkeypatch)
    async with stage(tmp_path) as world:
        for number, run in enumerate(tried, start=1):
            found = violations(await world.play(run))
            if any(fault.caught_as in each for each in found):
                sweep_log.append(f"planted {name}, caught by run {number}: {run}: {found[0]}")
                return
    pytest.fail(f"{name} survived {len(tried)} rude replies while {fault.where}")


def test_the_runs_have_every_act_in_every_state_and_every_wording_in_every_language() -> None:
    played = [run for state in State for run in runs(state)[:FEWEST]]
    assert len(played) >= 3000
    assert {(r.state, r.act) for r in played} == {(s, a) for s in State for a in ACTS}
    both = {(r.wording, r.language) for r in played}
    assert both == {(w, language) for w in WORDINGS for language in LANGUAGES}


def test_every_tool_that_decides_a_message_or_acts_for_a_person_is_among_the_acts() -> None:
    played = {made.name for act in ACTS.values() for made in act.calls}
    changes = {name for name, tool in FOREGROUND.items() if not _only_looks(tool)}
    assert changes - played == set()


def _only_looks(tool: Tool) -> bool:
    return tool.properties.looks_up or tool.properties.reads_file


async def _played(chosen: Iterable[Run], folder: Path) -> dict[str, list[str]]:
    async with stage(folder) as world:
        return {str(run): violations(await world.play(run)) for run in chosen}


def _report(found: dict[str, list[str]]) -> str:
    """Return one paragraph for each run with violations; `rude_ends` repeats it."""
    wrong = {run: each for run, each in found.items() if each}
    return "\n".join("\n  ".join([run, *each]) for run, each in wrong.items())


def _errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    records = (*caplog.get_records("setup"), *caplog.get_records("call"))
    return [record.getMessage() for record in records if record.levelno >= logging.ERROR]
