"""Attacks: strangers' orders do no harm in strict and standard teams, and each channel works.

Each attack is played against two teams, and once more as its twin: there a person allows it or
gives the same orders, and it must work. The twin shows that the attack was able to succeed.

`make test` plays a part of the attacks, which `--seed` chooses: some of each group, and all that
show that a guard is needed. `make both` and a run of this file play every attack.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.policies.attacks import (
    allowances,
    chains,
    encodings,
    floor,
    forgeries,
    guards,
    lasting,
    leaks,
    links,
    replies,
    sources,
    summary,
)
from tests.policies.attacks.mutants import MUTANTS
from tests.policies.attacks.scenario import Attack, perform
from tests.postgres_server import Server

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
    *guards.ATTACKS,
]
"""The attacks of each whole run."""
SHARE = 4
"""Of the attacks of a group, an ordinary run plays one in so many."""
FEWEST = 2
"""The fewest attacks of a group in an ordinary run."""
MORE: list[Attack] = [*sources.MORE, *encodings.MORE, *floor.MORE, *chains.OTHER_PAIRS]
"""The rest, with all pairs of carriers, which `make faults` plays."""


def _id(attack: Attack) -> str:
    return attack.id


def chosen(seed: int) -> list[Attack]:
    """Return the attacks of an ordinary run: those that a mutant names, and a part of each group.

    They are chosen from the whole list, so that a test that is run again alone is among them.
    """
    named = {id for mutant in MUTANTS for id in mutant.caught_by}
    played: list[Attack] = []
    for group in dict.fromkeys(attack.group for attack in ATTACKS):
        whole = [attack for attack in ATTACKS if attack.group == group]
        size = min(len(whole), max(FEWEST, len(whole) // SHARE))
        drawn = random.Random(f"{seed} {group}").sample(range(len(whole)), size)
        played += [a for place, a in enumerate(whole) if place in drawn or a.id in named]
    return played


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give the ordinary test all attacks, or the chosen ones in `make test` and `make quick`."""
    if metafunc.function is not test_an_attack_does_no_harm_and_its_twin_works:
        return
    config = metafunc.config
    is_ordinary = config.getoption("--lean") or config.getoption("--quick")
    played = chosen(config.getoption("--seed") or 0) if is_ordinary else ATTACKS
    metafunc.parametrize("attack", played, ids=_id)


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


SQLITE_ONLY = ("moved", "on disk")
"""Groups of attacks on the file of the database."""


def drawn(seed: int) -> list[Attack]:
    """Return one attack of each group that PostgreSQL can be attacked by, in random order."""
    chance = random.Random(seed)
    groups = dict.fromkeys(a.group for a in ATTACKS if a.group not in SQLITE_ONLY)
    found = [chance.choice([a for a in ATTACKS if a.group == group]) for group in groups]
    chance.shuffle(found)
    return found


async def test_a_random_attack_does_no_harm_on_postgres(
    postgres: Server, seed: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    await _check(drawn(seed)[0], tmp_path, request, database_url=postgres.fresh())


@pytest.mark.long
async def test_an_attack_of_each_group_does_no_harm_on_postgres(
    postgres: Server, seed: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for attack in drawn(seed):
        await _check(attack, tmp_path / attack.id, request, database_url=postgres.fresh())


async def _check(
    attack: Attack, folder: Path, request: pytest.FixtureRequest, **world: Any
) -> None:
    outcome = await perform(folder, attack, **world)
    summary.record(request.node.user_properties, attack, outcome)
    assert outcome.harm == {"strict": [], "standard": []}
    assert outcome.unlabelled == []
    assert outcome.unfenced == []
    assert outcome.twin != []


def test_there_are_two_hundred_attacks_and_each_run_plays_some_of_every_group() -> None:
    names = [attack.id for attack in (*ATTACKS, *MORE)]
    assert len(ATTACKS) >= 200
    assert len(set(names)) == len(names)
    for seed in range(3):
        played = chosen(seed)
        assert _groups(played) == _groups(ATTACKS)
        assert {id for mutant in MUTANTS for id in mutant.caught_by} <= {a.id for a in played}
    assert chosen(1) != chosen(2)


def _groups(attacks: Sequence[Attack]) -> list[str]:
    return list(dict.fromkeys(attack.group for attack in attacks))
