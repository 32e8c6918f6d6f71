"""Mutated scenarios: whichever reply of a model goes wrong, the runtime stays right."""

import random
from pathlib import Path

import pytest

from tests.conftest import SweepLog
from tests.habits import planted, stories
from tests.habits.mutations import Mutation, chosen, perform, rehearse
from tests.time_box import TimeBox

SEED = 7
SHORT = (
    "seed 5",
    "seed 9",
    "answer after a restart",
    "two questions",
    "late answer",
    "side work",
    "message beside a question",
    "alarm",
    "answer and messages",
)
"""Stories whose runs cost the least."""
EACH = (
    dict.fromkeys(stories.CHEAP, 7)
    | dict.fromkeys(stories.COSTLY, 3)
    | dict.fromkeys(SHORT, 15)
    | {"seed 7": 10, "grown stage": 12}
)
"""Runs of each story in `make both`."""
LEAN = dict.fromkeys(stories.ALL, 1) | {
    "seed 1": 2,
    "research": 2,
    "seed 6": 2,
    "seed 5": 5,
    "grown stage": 5,
    "alarm": 6,
    "side work": 8,
    "seed 9": 12,
    "message beside a question": 20,
    "two questions": 25,
    "answer after a restart": 25,
    "answer and messages": 38,
    "late answer": 38,
}
"""Runs of each story in `make test`: most are of the stories that cost the least."""
ALL_RUNS = 1_000_000
MOST_PLANTED = 50
"""Runs of a story in which a planted fault must be caught."""
FEWEST = 120
"""Runs of each story in `make faults`, however little time there is: all runs of a story that has
fewer, and more than 2,000 of all stories together."""


@pytest.mark.slow
@pytest.mark.parametrize("story", stories.ALL)
def test_a_story_with_a_lapse_stays_right(
    story: str, sweep_log: SweepLog, request: pytest.FixtureRequest
) -> None:
    most = (LEAN if request.config.getoption("--lean") else EACH)[story]
    found = _performed(chosen(story, most=most, seed=SEED))
    sweep_log.append(f"{len(found)} mutated runs of {story!r}, seed {SEED}")
    assert _report(found) == ""
    assert len(found) >= max(1, 2 * most // 3)


RUDE = (
    "answers from nothing",
    "starts needless work",
    "researches needlessly",
    "claims to have stopped it",
    "insists that it stopped it",
    "calls a tool that is not there",
    "stays silent in a reply",
)


@pytest.mark.slow
@pytest.mark.parametrize("lapse", RUDE)
def test_a_person_is_told_the_truth_by_a_rude_model(lapse: str) -> None:
    [mutation, *_] = [
        m for m in rehearse("conversation").mutations("conversation") if m.lapse == lapse
    ]
    assert _report(_performed([mutation])) == ""


RUDE_IN_RESEARCH = (
    "plans in prose",
    "notes an invented quotation",
    "claims to have read",
    "ends its reading at once",
    "reports what nobody noted",
)


@pytest.mark.slow
@pytest.mark.parametrize("lapse", RUDE_IN_RESEARCH)
def test_a_report_stays_true_with_a_rude_model(lapse: str) -> None:
    found = rehearse("research job").mutations("research job")
    [mutation, *_] = [m for m in found if m.lapse == lapse]
    assert _report(_performed([mutation])) == ""


def test_every_file_of_scenarios_is_a_story() -> None:
    folder = Path(__file__).parents[1]
    files = {file.stem for file in (folder / "scenarios").glob("test_*.py")}
    used = (folder / "habits" / "stories.py").read_text()
    # The newcomer's models are behind a server process of its own; those of the vendors' programs
    # answer the programs, not agents; the others have models of their own that err.
    others = {
        "test_after_the_end",
        "test_confided",
        "test_dialogues",
        "test_newcomer",
        "test_programs_of_vendors",
        "test_read_from_outside",
    }
    assert {name for name in files if f"{name}." not in used} == others


def test_the_stories_have_enough_runs_with_a_lapse() -> None:
    assert sum(LEAN.values()) >= 200
    assert sum(EACH.values()) >= 200


@pytest.mark.long
def test_the_runs_of_make_test_play_every_lapse_that_a_story_admits() -> None:
    admitted = {m.lapse for story in stories.ALL for m in rehearse(story).mutations(story)}
    played = {
        mutation.lapse
        for story in stories.ALL
        for mutation in chosen(story, most=LEAN[story], seed=SEED)
    }
    assert admitted - played - {*RUDE, *RUDE_IN_RESEARCH} == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", planted.ALL)
def test_a_planted_old_fault_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch, sweep_log: SweepLog
) -> None:
    fault = planted.ALL[name]
    played = chosen(fault.where, most=ALL_RUNS, seed=SEED)
    runs = [m for m in played if fault.lapse in ("", m.lapse)]
    if fault.is_after_words:
        runs.sort(key=lambda m: not _is_after_words(m))
    fault.arm(monkeypatch)
    for number, mutation in enumerate(runs[:MOST_PLANTED], start=1):
        if found := perform(mutation):
            sweep_log.append(f"planted {name}, caught by run {number}: {mutation}: {found[0]}")
            return
    pytest.fail(f"{name} survived {len(runs[:MOST_PLANTED])} mutated runs of {fault.where!r}")


@pytest.mark.long(share=0.01)
@pytest.mark.parametrize("story", stories.ALL)
def test_a_story_with_any_lapse_in_any_reply_stays_right(
    story: str, time_box: TimeBox, seed: int, sweep_log: SweepLog
) -> None:
    every = list(rehearse(story).mutations(story))
    random.Random(seed).shuffle(every)
    found: dict[Mutation, list[str]] = {}
    for number, mutation in enumerate(every):
        if number >= FEWEST and not time_box.is_open:
            break
        found |= _performed([mutation])
    sweep_log.append(f"{len(found)} of {len(every)} mutated runs of {story!r}, seed {seed}")
    assert _report(found) == ""


def _is_after_words(mutation: Mutation) -> bool:
    before = rehearse(mutation.story).places[max(0, mutation.reply - 1)]
    return not before.said.calls


def _performed(mutations: list[Mutation]) -> dict[Mutation, list[str]]:
    """Run the mutations; leave out those whose reply did not come."""
    found = {mutation: perform(mutation) for mutation in mutations}
    return {mutation: each for mutation, each in found.items() if each is not None}


def _report(found: dict[Mutation, list[str]]) -> str:
    """Return one paragraph for each run with violations."""
    wrong = {mutation: each for mutation, each in found.items() if each}
    return "\n".join("\n  ".join([str(mutation), *each]) for mutation, each in wrong.items())
