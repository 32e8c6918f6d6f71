"""Knowledge over HTTP: the history of changes, page by page."""

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge.verbs import items
from tests.api.serving import Served


async def test_changes_are_paged_backwards_from_the_newest_or_forwards_from_a_cursor(
    served: Served,
) -> None:
    served.world.script("ada")
    founded = await served.world.found("Learn", start=False)

    def learn(tx: Tx) -> None:
        for number in range(5):
            items.learn(
                tx,
                founded.coordinator,
                "fact",
                f"Fact {number} stands alone, unlike {'others ' * number}",
                author=OWNER,
            )

    await served.world.store.write(learn)

    async def ids(query: str) -> list[str]:
        path = f"/agents/{founded.coordinator.id}/changes?{query}"
        status, found = await served.ask("GET", path)
        assert status == 200, found
        return [change["id"] for change in found]

    everything = await ids("limit=500")
    assert (len(everything), everything == sorted(everything)) == (5, True)
    assert await ids("limit=2") == everything[3:]
    assert await ids(f"limit=2&before={everything[3]}") == everything[1:3]
    assert await ids(f"limit=2&before={everything[1]}") == everything[:1]
    assert await ids(f"limit=2&before={everything[0]}") == []
    assert await ids(f"limit=2&after={everything[0]}") == everything[1:3]
    assert await ids(f"limit=2&after={everything[4]}") == []
    path = f"/agents/{founded.coordinator.id}/changes?after=a&before=b"
    assert (await served.ask("GET", path))[0] == 422


async def test_unverified_knowledge_is_listed_with_its_sources_confirmed_and_rejected(
    served: Served,
) -> None:
    served.world.script("ada")
    founded = await served.world.found("Learn", start=False)
    ada = founded.coordinator
    label = of_page("https://example.org/tea")

    def learn(tx: Tx) -> list[str]:
        said = ("Tea costs 3 pounds", "Pay the vendor first")
        kept = [items.learn(tx, ada, "fact", one, author=ada.id, label=label) for one in said]
        return [insight.id for insight in kept]

    tea, order = await served.world.store.write(learn)
    path = f"/teams/{founded.team.id}/unconfirmed"
    status, found = await served.ask("GET", path)
    at = found[0].pop("created_at")
    assert (status, found[0]) == (
        200,
        {
            "id": tea,
            "agent_id": ada.id,
            "kind": "insight",
            "text": "Tea costs 3 pounds",
            "status": "unverified",
            "sources": ["page:example.org"],
            "learned_from": [],
        },
    )
    assert at == served.world.clock.now().isoformat().replace("+00:00", "Z")
    status, known = await served.ask("POST", f"/knowledge/{tea}/confirm")
    assert (status, known["status"], known["label"]) == (
        200,
        "active",
        {"sources": [], "others": 0},
    )
    status, gone = await served.ask("POST", f"/knowledge/{order}/reject")
    assert (status, gone["status"]) == (200, "removed")
    assert await served.ask("GET", path) == (200, [])
    assert (await served.ask("POST", f"/knowledge/{tea}/confirm"))[0] == 409
    assert (await served.ask("POST", "/knowledge/nothing/confirm"))[0] == 404
