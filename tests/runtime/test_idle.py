"""Teams that do nothing cost nothing: no call to a model, no row, ever."""

from bench import idle


async def test_idle_teams_call_no_model_and_let_the_database_be() -> None:
    found = await idle.measure(20, 24 * 60)  # a simulated day
    assert found["looks"] == 20 * 24 * 60
    assert found["calls of a model"] == 0
    assert found["bytes of database more after"] <= 4096
