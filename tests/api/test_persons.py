"""A second person: acts under their own id, and has their own inbox."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.ids import PersonId, new_id
from agiraph.core.domain.persons import OWNER, Person, is_person
from agiraph.core.services import access
from agiraph.core.store import channels, teams
from agiraph.core.store.deliveries import of_message
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.teams import PERSONS
from agiraph.core.store.tx import Tx
from agiraph.testing import call, says
from tests.api.serving import Served, serving


class SecondPerson:
    """A person whose row the test inserted, with a token."""

    def __init__(self, served: Served, id: PersonId, secret: str) -> None:
        self.id = id
        self._served = served
        self._secret = secret

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return await self._served.ask(method, path, body, Authorization=f"Bearer {self._secret}")


def _create(tx: Tx) -> tuple[PersonId, str]:
    person = Person(id=PersonId(new_id("person")), name="Bea", role="owner", created_at=tx.now)
    PERSONS.insert(tx, person)
    issued = access.issue(tx, person.id, kind="token", name="bea's", scope="admin")
    return person.id, issued.secret


@pytest.fixture
async def on_each(tmp_path: Path, database_url: str) -> AsyncIterator[Served]:
    """A served world, once on each database."""
    async with serving(tmp_path / "home", database_url=database_url) as opened:
        yield opened


@pytest.fixture
async def bea(on_each: Served) -> SecondPerson:
    return SecondPerson(on_each, *await on_each.world.store.write(_create))


async def test_messages_carry_the_persons_id_and_the_reply_is_addressed_to_them(
    on_each: Served, bea: SecondPerson
) -> None:
    chat = call("no_work_needed")
    on_each.world.script("ada", says("Hello.", chat), says("Good day.", chat))
    founded = await on_each.world.found("Watch", start=False)
    path = f"/agents/{founded.coordinator.id}"
    status, sent = await bea.ask("POST", f"{path}/send", {"message": "Hi", "mode": "send"})
    assert (status, sent["sender"], sent["sender_name"]) == (202, bea.id, "Bea")
    await on_each.ask("POST", f"{path}/send", {"message": "I am the owner"})
    await on_each.world.settle()
    _, hers = await bea.ask("GET", f"{path}/conversation")
    _, his = await on_each.ask("GET", f"{path}/conversation")
    assert {(m["sender"], m["recipient"]) for m in hers} == {
        (bea.id, founded.coordinator.id),
        (founded.coordinator.id, bea.id),
    }
    assert {(m["sender"], m["recipient"]) for m in his} == {
        (OWNER, founded.coordinator.id),
        (founded.coordinator.id, OWNER),
    }
    assert his[0]["sender_name"] == "human"
    for _ in range(2):  # the second one tells nobody anything new
        await bea.ask("PUT", f"{path}/read", {"seq": hers[-1]["seq"]})
    seen = [
        e.data["message_ids"]
        for e in await on_each.world.events(founded.team.id)
        if e.type == "message.seen"
    ]
    assert seen[-1] == [m["id"] for m in hers if m["recipient"] == bea.id]
    assert seen.count(seen[-1]) == 1
    assert [(await who.ask("GET", path))[1]["unread"] for who in (bea, on_each)] == [0, 1]


async def test_a_person_sees_and_answers_only_their_own_questions(
    on_each: Served, bea: SecondPerson
) -> None:
    on_each.world.script(
        "ada", says(call("ask_human", question="Which?")), says(call("finish", summary="Done."))
    )
    _, team = await bea.ask("POST", "/teams", {"goal": "Choose", "model": "scripted/ada"})
    await on_each.world.settle()
    assert (await on_each.world.store.read(teams.TEAMS.get, team["id"])).owner_id == bea.id
    _, page = await bea.ask("GET", "/inbox")
    [item] = page["items"]
    question = item["message"]["id"]
    assert (item["message"]["recipient"], page["unread"]) == (bea.id, 1)
    assert (await on_each.ask("GET", "/inbox"))[1] == {"items": [], "cursor": None, "unread": 0}
    assert (await on_each.ask("GET", f"/inbox/{question}"))[0] == 404
    status, _ = await on_each.ask("POST", f"/inbox/{question}/answer", {"text": "Mine."})
    assert status == 404
    status, _ = await bea.ask("POST", f"/inbox/{question}/answer", {"text": "The second."})
    assert status == 200
    await on_each.world.settle()
    [answer] = await on_each.world.store.read(
        MESSAGES.select, "in_reply_to = :question", question=question
    )
    assert (answer.sender, answer.text) == (bea.id, "The second.")
    _, page = await bea.ask("GET", "/inbox")
    assert {i["message"]["kind"] for i in page["items"]} == {"question", "result"}
    assert (await on_each.ask("GET", "/inbox"))[1]["items"] == []


async def test_the_audit_log_and_tokens_name_the_person(on_each: Served, bea: SecondPerson) -> None:
    on_each.world.script("ada")
    _, issued = await bea.ask("POST", "/tokens", {"name": "report"})
    await on_each.ask("POST", "/tokens", {"name": "backup"})
    _, entries = await on_each.ask("GET", "/audit")
    assert [entry["person_id"] for entry in entries] == [bea.id, OWNER]
    assert issued["person_id"] == bea.id
    _, tokens = await on_each.ask("GET", "/tokens")
    assert {token["name"]: token["person_id"] for token in tokens} == {
        "bea's": bea.id,
        "report": bea.id,
        "backup": OWNER,
    }


async def test_a_token_of_a_deleted_person_is_refused(on_each: Served, bea: SecondPerson) -> None:
    assert (await bea.ask("GET", "/teams"))[0] == 200
    await on_each.world.store.write(
        lambda tx: tx.run("delete from persons where id = :id", id=bea.id)
    )
    assert (await bea.ask("GET", "/teams"))[0] == 401


async def test_the_owners_channels_get_no_messages_of_another_person(
    on_each: Served, bea: SecondPerson
) -> None:
    on_each.world.script("ada", says(call("ask_human", question="Which?")))
    await on_each.world.store.write(
        channels.add, {"mail": frozenset({"question"})}, person_id=OWNER
    )
    await bea.ask("POST", "/teams", {"goal": "Choose", "model": "scripted/ada"})
    await on_each.world.settle()
    _, page = await bea.ask("GET", "/inbox")
    [item] = page["items"]
    assert await on_each.world.store.read(of_message, item["message"]["id"]) == []


def test_is_person_recognises_person_ids_only() -> None:
    assert is_person(OWNER)
    assert is_person(new_id("person"))
    assert not any(map(is_person, (new_id("agent"), "system", "everyone", "Human")))
