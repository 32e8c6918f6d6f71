"""Attacks: strangers' orders do no harm in strict and standard teams, and each channel works.

Each attack is played against two teams, and once more as its twin: there a person allows it or
gives the same orders, and it must work. The twin shows that the attack was able to succeed.
"""

from pathlib import Path

import pytest

from tests.policies.attacks import (
    allowances,
    chains,
    encodings,
    floor,
    forgeries,
    lasting,
    leaks,
    links,
    sources,
    summary,
)
from tests.policies.attacks.scenario import Attack, perform

ATTACKS: list[Attack] = [
    *leaks.ATTACKS,
    *sources.ATTACKS,
    *encodings.ATTACKS,
    *chains.SINGLE,
    *chains.FEW,
    *chains.SECOND_GENERATION,
    *links.ATTACKS,
    *forgeries.ATTACKS,
    *allowances.ATTACKS,
    *lasting.ATTACKS,
    *floor.ATTACKS,
]
UNDER_WAY = "the notes of a new worker"
"""What has no label yet."""


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.id)
async def test_an_attack_does_no_harm_and_its_twin_works(
    attack: Attack, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if UNDER_WAY in attack.name:
        request.applymarker(pytest.mark.xfail(strict=False))
    outcome = await perform(tmp_path, attack)
    summary.record(request.node.user_properties, attack, outcome)
    assert outcome.harm == {"strict": [], "standard": []}
    assert outcome.unlabelled == []
    assert outcome.unfenced == []
    assert outcome.twin != []
