"""A server that is killed at random loses nothing acknowledged, and does nothing twice."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import SweepLog
from tests.faults.attack.attack import attack
from tests.faults.attack.context import Violation
from tests.faults.attack.planted import ALL
from tests.time_box import TimeBox

KILLS = 6
MANY_KILLS = 200
"""Kills in one home, before a new one is used; `make faults` makes at least as many."""
SOON_FOUND = frozenset({"gap_in_events", "repeated_report"})
"""Planted bugs that one or two kills reveal; `make faults` plants the others, too."""
ENOUGH_TO_CATCH = 25


@pytest.mark.timeout(900)
async def test_random_kills_of_the_whole_server_lose_and_repeat_nothing(
    tmp_path: Path, sweep_log: SweepLog, seed: int
) -> None:
    async with attack(tmp_path, seed=seed) as attacked:
        counts = await attacked.run(lambda kills: kills < KILLS)
        await attacked.close()
    sweep_log.append(f"attack, seed {seed}: {_summary(counts)}")


@pytest.mark.long(share=0.75)
async def test_very_many_random_kills_of_the_whole_server_lose_and_repeat_nothing(
    tmp_path: Path, sweep_log: SweepLog, time_box: TimeBox, seed: int
) -> None:
    campaign = 0
    while campaign == 0 or time_box.is_open:
        folder = tmp_path / str(campaign)
        folder.mkdir()

        def continues(kills: int, first: bool = campaign == 0) -> bool:
            return kills < MANY_KILLS and (first or time_box.is_open)

        async with attack(folder, seed=seed + campaign) as attacked:
            counts = await attacked.run(continues)
            await attacked.close()
        sweep_log.append(f"attack, seed {seed + campaign}: {_summary(counts)}")
        shutil.rmtree(folder)
        campaign += 1


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [name if name in SOON_FOUND else pytest.param(name, marks=pytest.mark.long) for name in ALL],
)
async def test_a_bug_planted_in_the_server_is_found_by_the_attack(
    tmp_path: Path, sweep_log: SweepLog, name: str, seed: int
) -> None:
    planted = ALL[name]
    started = attack(tmp_path, seed=seed, planted=name, parts=planted.parts)
    async with started as attacked:
        with pytest.raises(Violation, match=planted.says):
            await attacked.run(lambda kills: kills < ENOUGH_TO_CATCH, every=5)
        sweep_log.append(f"planted {name}, found after {attacked.host.kills} kills")


def _summary(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) + ", 0 violations"
