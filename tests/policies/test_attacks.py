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
    replies,
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
    *replies.ATTACKS,
    *lasting.ATTACKS,
    *floor.ATTACKS,
]
"""The attacks of each run."""
MORE: list[Attack] = [*sources.MORE, *encodings.MORE, *floor.MORE, *chains.OTHER_PAIRS]
"""The rest, with all pairs of carriers, which `make faults` plays."""


def _id(attack: Attack) -> str:
    return attack.id


@pytest.mark.parametrize("attack", ATTACKS, ids=_id)
async def test_an_attack_does_no_harm_and_its_twin_works(
    attack: Attack, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    await _check(attack, tmp_path, request)


@pytest.mark.long
@pytest.mark.parametrize("attack", MORE, ids=_id)
async def test_one_of_many_attacks_does_no_harm_and_its_twin_works(
    attack: Attack, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    await _check(attack, tmp_path, request)


async def _check(attack: Attack, folder: Path, request: pytest.FixtureRequest) -> None:
    outcome = await perform(folder, attack)
    summary.record(request.node.user_properties, attack, outcome)
    assert outcome.harm == {"strict": [], "standard": []}
    assert outcome.unlabelled == []
    assert outcome.unfenced == []
    assert outcome.twin != []


def test_at_least_two_hundred_attacks_are_played_in_each_run() -> None:
    names = [attack.id for attack in (*ATTACKS, *MORE)]
    assert len(ATTACKS) >= 200
    assert len(set(names)) == len(names)
