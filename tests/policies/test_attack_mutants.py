"""Mutants of the guards: without its guard, an attack succeeds, so each guard is tested."""

from pathlib import Path

import pytest

from agiraph.core.domain.provenance.sinks import Sink
from tests.policies.attacks.mutants import MUTANTS, Mutant
from tests.policies.attacks.scenario import perform
from tests.policies.test_attacks import ATTACKS

BY_ID = {attack.id: attack for attack in ATTACKS}


ELSEWHERE = {
    Sink.UNCONFINED_COMMAND: "tools/test_unconfined_commands.py",
    Sink.GIVEN_FOLDER: "home/test_given_folders.py",
    Sink.PRIVATE_SEND: "policies/test_private_sends.py",
}
"""Ways out that are tested where the machine, or a folder of a person, is made ready for them."""


def test_each_way_out_has_a_mutant() -> None:
    said = " ".join(mutant.name for mutant in MUTANTS)
    lacking = {sink for sink in Sink if f"the way out {sink} is" not in said}
    assert lacking == set(ELSEWHERE)
    assert all((Path(__file__).parents[1] / file).exists() for file in ELSEWHERE.values())


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
async def test_an_attack_succeeds_without_the_guard(
    mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant.arm(monkeypatch)
    outcomes = [await perform(tmp_path / id, BY_ID[id], twin=False) for id in mutant.caught_by]
    assert not all(outcome.is_safe for outcome in outcomes)
