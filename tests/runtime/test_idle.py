"""Idle teams cost nothing: no model calls, no new rows."""

import pytest
from bench import idle

DAY = 24 * 60
"""The checks of a team in a simulated day."""


@pytest.mark.slow
@pytest.mark.parametrize("checks", [DAY // 6, pytest.param(DAY, marks=pytest.mark.long)])
async def test_idle_teams_call_no_model_and_do_not_grow_the_database(checks: int) -> None:
    found = await idle.measure(5, checks)
    assert found["checks"] == 5 * checks
    assert found["calls of a model"] == 0
    assert found["bytes of database more after"] <= 4096
