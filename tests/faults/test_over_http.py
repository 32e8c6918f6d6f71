"""A server that is killed again and again keeps what it acknowledged, and does nothing twice."""

from pathlib import Path

import pytest

from tests.conftest import SweepLog, _free_port
from tests.faults.over_http import ordeal

KILLS = 25
MANY_KILLS = 1000


@pytest.mark.timeout(900)
async def test_kills_of_the_whole_server_lose_and_repeat_nothing(
    tmp_path: Path, sweep_log: SweepLog
) -> None:
    sweep_log.append(f"over HTTP: {await ordeal(tmp_path, _free_port(), kills=KILLS)}")


@pytest.mark.long
@pytest.mark.timeout(14_400)
async def test_very_many_kills_of_the_whole_server_lose_and_repeat_nothing(
    tmp_path: Path, sweep_log: SweepLog
) -> None:
    said = await ordeal(tmp_path, _free_port(), kills=MANY_KILLS, seed=2)
    sweep_log.append(f"over HTTP: {said}")
