"""A page of events is limited in bytes, and the pages together are complete."""

from agiraph.core.domain.events.work import NodeCheckpoint
from agiraph.core.domain.ids import TeamId
from agiraph.core.store import events
from agiraph.core.store.tx import Tx
from agiraph.testing import World

SIZES = [10] * 300 + [50_000] * 5 + [10] * 40 + [200_000, 10, 10]


def emit_events(tx: Tx, team_id: TeamId) -> None:
    for size in SIZES:
        tx.emit(team_id, NodeCheckpoint(node_id="node_x", summary="x" * size))


async def test_pages_of_events_are_small_and_together_complete(world: World) -> None:
    world.script("ada")
    team = (await world.found("Watch", start=False)).team.id
    await world.store.write(emit_events, team)
    all_events = await world.events(team)

    pages: list[list[int]] = []
    seq = 0
    while got := await world.store.read(events.page, team, seq, limit=128, most_bytes=65_536):
        pages.append([event.seq for event in got])
        seq = got[-1].seq
        assert len(got) <= 128
        assert sum(len(event.data.get("summary", "")) for event in got) < 65_536 + 3 * 200_000

    assert [number for page in pages for number in page] == [e.seq for e in all_events]
    assert await world.store.read(events.page, team, seq, limit=128, most_bytes=1) == []
    assert len(await world.store.read(events.page, team, 0, limit=128, most_bytes=1)) <= 2
