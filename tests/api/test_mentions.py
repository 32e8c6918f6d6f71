"""Mentions: a message goes to the agents that it mentions, once, and files need no words."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.services.board import labels
from agiraph.core.services.members import roster
from agiraph.testing import call, says
from tests.api.serving import Served, serving


@pytest.fixture
async def on_each(tmp_path: Path, database_url: str) -> AsyncIterator[Served]:
    """A served world, once on each database."""
    async with serving(tmp_path / "home", database_url=database_url) as opened:
        yield opened


async def _hire(served: Served, team: Any, name: str) -> str:
    hired = await served.world.store.write(
        roster.hire, team, name=name, role="worker", model=f"scripted/{name}"
    )
    return hired.id


async def test_a_message_goes_once_to_whom_it_mentions_and_is_shown_where_it_was_written(
    on_each: Served,
) -> None:
    for name in ("bob", "eve"):
        on_each.world.script(name, says(f"{name} here.", call("no_work_needed")))
    founded = await on_each.world.found("Watch", start=False)
    ada = founded.coordinator.id
    bob, eve = [await _hire(on_each, founded.team.id, name) for name in ("bob", "eve")]
    body = {"message": "@eve @bob look", "client_id": "once", "mentions": [eve, bob]}

    status, sent = await on_each.ask("POST", f"/agents/{ada}/send", body)
    again, repeated = await on_each.ask("POST", f"/agents/{ada}/send", body)
    await on_each.world.settle()

    assert (status, again, repeated["id"]) == (202, 202, sent["id"])
    first, second = sorted([bob, eve])
    assert (sent["recipient"], sent["client_id"], sent["said_to"]) == (first, "once", ada)
    _, here = await on_each.ask("GET", f"/agents/{ada}/conversation")
    assert [(m["recipient"], m["said_to"]) for m in here] == [(first, ada), (second, ada)]
    for agent, name in ((bob, "bob"), (eve, "eve")):
        _, there = await on_each.ask("GET", f"/agents/{agent}/conversation")
        assert [m["text"] for m in there] == ["@eve @bob look", f"{name} here."]

    # The agent of the conversation gets it too if it is mentioned, as any message to it.
    on_each.world.script("ada", says("Ada here.", call("no_work_needed")))
    _, both = await on_each.ask(
        "POST", f"/agents/{ada}/send", {"message": "@ada", "mentions": [ada]}
    )
    assert (both["recipient"], both["said_to"]) == (ada, None)


async def test_a_mention_of_somebody_else_is_refused_and_nobody_gets_the_message(
    on_each: Served,
) -> None:
    founded = await on_each.world.found("Watch", start=False)
    other = await on_each.world.found("Wait", start=False)
    mentions = [other.coordinator.id, founded.coordinator.id]
    path = f"/agents/{founded.coordinator.id}"
    status, refusal = await on_each.ask(
        "POST", f"{path}/send", {"message": "Hi", "mentions": mentions}
    )
    assert status == 422, refusal
    assert "is not on this team" in refusal["detail"]
    assert await on_each.ask("GET", f"{path}/conversation") == (200, [])


async def test_files_can_be_sent_without_words_but_nothing_at_all_cannot(on_each: Served) -> None:
    on_each.world.script("ada", says("I see it.", call("no_work_needed")))
    founded = await on_each.world.found("Watch", start=False)
    path = f"/agents/{founded.coordinator.id}/send"
    file = {"name": "a.txt", "media_type": "text/plain", "data": base64.b64encode(b"x").decode()}
    _, sent = await on_each.ask("POST", path, {"message": "", "attachments": [file]})
    assert (sent["text"], sent["attachments"]) == ("(I send a file.)", [file])
    status, refusal = await on_each.ask("POST", path, {"message": " "})
    assert status == 422
    assert "write a message or attach a file" in str(refusal["faults"])


async def test_files_of_messages_are_found_among_the_uploads_with_their_label(
    on_each: Served,
) -> None:
    for name in ("ada", "bob"):
        on_each.world.script(name, says("I see it.", call("no_work_needed")))
    founded = await on_each.world.found("Watch", start=False)
    other = await on_each.world.found("Wait", start=False)
    ada, at = founded.coordinator.id, f"/teams/{founded.team.id}/files"
    bob = await _hire(on_each, founded.team.id, "bob")
    files = [
        {"name": name, "media_type": "text/plain", "data": base64.b64encode(text).decode()}
        for name, text in (("Offer notes.md", b"Ten pumps"), ("../a\u202e\0.txt", b"x"))
    ]
    body = {"message": "Look", "attachments": files, "mentions": [ada, bob]}
    await on_each.ask("POST", f"/agents/{ada}/send", body)

    _, listed = await on_each.ask("GET", f"{at}/user_uploads")
    paths = [entry["path"] for entry in listed["entries"]]
    start = paths[0].removesuffix("/0/Offer notes.md")
    assert paths == [f"{start}/0/Offer notes.md", f"{start}/1/.._a_\ufffd.txt"]
    assert [entry["size"] for entry in listed["entries"]] == [9, 1]
    _, top = await on_each.ask("GET", at)
    assert "user_uploads" in [entry["path"] for entry in top["entries"]]
    assert await on_each.ask("GET", f"{at}/{paths[0]}") == (200, "Ten pumps")
    label = await on_each.world.store.read(labels.of_path, founded.team.id, paths[0])
    assert "file:Offer notes.md" in label.sources

    for wrong in (f"{at}/{start}/2/x", f"/teams/{other.team.id}/files/{paths[0]}"):
        assert (await on_each.ask("GET", wrong))[0] == 404
