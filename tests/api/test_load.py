"""Many clients at once: no request is refused, no event is lost or sent twice."""

import pytest
from bench.load import Plan, measure


@pytest.mark.slow
async def test_every_client_receives_every_event_once_while_some_stop_reading() -> None:
    # So many messages that the buffers of a client that stops reading are full.
    plan = Plan(
        seconds=0, least=40, senders=10, watchers=12, stalled=2, teams=3, size=60_000, pause=0.1
    )
    found = await measure(plan)
    assert (found["errors"], found["wrong"]) == ([], [])
    assert found["sent"] == plan.senders * plan.least
    assert found["closed"] >= plan.stalled
    for got in found["got"]:
        assert got == {team: found["heads"][team] for team in got}
