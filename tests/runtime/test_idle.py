"""Idle teams cost nothing: no model calls, no new rows."""

from bench import idle


async def test_idle_teams_call_no_model_and_do_not_grow_the_database() -> None:
    found = await idle.measure(5, 24 * 60)  # a simulated day
    assert found["checks"] == 5 * 24 * 60
    assert found["calls of a model"] == 0
    assert found["bytes of database more after"] <= 4096
