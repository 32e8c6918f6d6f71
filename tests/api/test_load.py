"""Many clients at once: nothing is refused, lost or heard twice, whoever stops reading."""

from bench.load import Plan, measure


async def test_everybody_hears_everything_once_though_some_stop_reading() -> None:
    plan = Plan(seconds=6, senders=10, watchers=12, stalled=2, teams=3, size=60_000, pause=0.1)
    found = await measure(plan)
    assert (found["errors"], found["wrong"]) == ([], [])
    assert found["sent"] >= plan.senders
    assert found["closed"] >= plan.stalled
    for got in found["got"]:
        assert got == {team: found["heads"][team] for team in got}
