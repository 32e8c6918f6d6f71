"""The inbox over HTTP."""

from agiraph.domain.labels import of_page
from agiraph.domain.persons import OWNER
from agiraph.services.board import planning
from agiraph.services.mail import bus
from agiraph.testing import call, says
from tests.api.serving import Served


async def test_the_rating_of_a_briefing_is_shown_in_inbox_and_conversation(served: Served) -> None:
    served.world.script("ada")
    founded = await served.world.found("Watch", start=False)
    sent = await served.world.store.write(
        bus.send,
        team_id=founded.team.id,
        sender=founded.coordinator.id,
        recipient=OWNER,
        text="Rates rose.",
        kind="briefing",
    )

    async def rating() -> str | None:
        _, page = await served.ask("GET", "/inbox")
        [item] = page["items"]
        _, said = await served.ask("GET", f"/agents/{founded.coordinator.id}/conversation")
        assert [message["rating"] for message in said] == [item["message"]["rating"]]
        return item["message"]["rating"]

    assert await rating() is None
    status, rated = await served.ask("POST", f"/inbox/{sent.id}/rate", {"thumb": "up"})
    assert (status, rated["message"]["rating"]) == (200, "up")
    assert await rating() == "up"
    await served.ask("POST", f"/inbox/{sent.id}/rate", {"thumb": "down"})
    assert await rating() == "down"


async def test_messages_and_results_name_the_sources_of_their_words(served: Served) -> None:
    served.world.script("ada", says(call("finish", summary="Tea costs 3 pounds.")))
    founded = await served.world.found("Watch", start=False)
    ada = founded.coordinator
    await served.world.store.write(
        lambda tx: planning.create(
            tx,
            team_id=founded.team.id,
            task="What does tea cost?",
            source="user",
            assignee_id=ada.id,
            label=of_page("https://example.org/tea"),
        )
    )
    await served.world.settle()
    _, page = await served.ask("GET", "/inbox")
    [item] = page["items"]
    assert item["message"]["sources"] == ["page:example.org"]
    _, board = await served.ask("GET", f"/teams/{founded.team.id}/board")
    assert [node["sources"] for node in board] == [["page:example.org"]]
    _, said = await served.ask("GET", f"/agents/{ada.id}/conversation")
    assert [message["sources"] for message in said] == [["page:example.org"]]
