"""Edits: a person's last message is replaced by another one, and nobody answers both."""

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, Says, call, says
from agiraph.testing.script import Seen
from agiraph.testing.scripted import ScriptedModel
from tests.api.serving import Served, serving
from tests.api.test_persons import SecondPerson, _create
from tests.runtime.waiting import Gate, until
from tests.wording import Wording

NOTED = says("Noted.", call("no_work_needed"))
FINISH = says(call("finish", summary="Done."))
MARK = "They edited their message before"


@dataclass(slots=True)
class Talk:
    """A person and a coordinator: `mouth` gives its replies, `ada` does its work."""

    served: Served
    founded: NewTeam
    mouth: ScriptedModel
    work: ScriptedModel

    @property
    def path(self) -> str:
        return f"/agents/{self.founded.coordinator.id}"

    async def send(self, text: str, **more: Any) -> dict[str, Any]:
        status, sent = await self.served.ask("POST", f"{self.path}/send", {"message": text, **more})
        assert status == 202, sent
        return sent

    async def refusal(self, text: str, **more: Any) -> tuple[int, str]:
        status, told = await self.served.ask("POST", f"{self.path}/send", {"message": text, **more})
        return status, told["detail"]

    async def said(self) -> list[dict[str, Any]]:
        _, said = await self.served.ask("GET", f"{self.path}/conversation")
        return said

    async def open_work(self, message: dict[str, Any]) -> list[str]:
        _, found = await self.served.ask("GET", f"/messages/{message['id']}/work")
        return [node["id"] for node in found]

    async def board(self) -> list[tuple[str, str]]:
        found = await self.served.world.board(self.founded.team.id)
        return [(node.task, node.status) for node in found]

    async def replies(self, number: int) -> None:
        """Wait until the person has this many replies."""

        async def has_them() -> bool:
            found = await self.served.world.conversation(self.founded.coordinator)
            return sum(m.in_reply_to is not None for m in found) == number

        await until(self.served.world, has_them)


@pytest.fixture
async def served(tmp_path: Path, database_url: str) -> AsyncIterator[Served]:
    home = tmp_path / "home"
    async with serving(home, database_url=database_url, reply_model="scripted/mouth") as opened:
        yield opened


async def talk_of(served: Served, replies: list[Says], work: list[Says]) -> Talk:
    mouth, ada = served.world.script("mouth", *replies), served.world.script("ada", *work)
    founded = await served.world.found("Run the shop", start=False)
    return Talk(served, founded, mouth, ada)


async def hired(talk: Talk, name: str) -> str:
    """Hire an agent whose replies are the next ones of the script; return its id."""
    team = talk.founded.team.id
    made = await talk.served.world.store.write(
        roster.hire, team, name=name, role="worker", model="scripted/mouth"
    )
    return made.id


def asked(model: ScriptedModel, place: int = -1) -> str:
    """Return the last thing that the model was told in one of its requests."""
    return model.requests[place].turns[-1].text


async def test_a_message_that_nobody_has_read_is_answered_once_as_edited(served: Served) -> None:
    talk = await talk_of(served, [NOTED, NOTED], [])
    gate = talk.mouth.gate = Gate()
    await talk.send("Hello")
    await gate.reached()
    first = await talk.send("Paint it blu")
    body = {"edits": first["id"], "client_id": "once"}
    second = await talk.send("Paint it blue", **body)
    repeated = await talk.send("Paint it blue", **body)
    gate.set()
    await served.world.settle()
    assert repeated["id"] == second["id"]
    assert (second["edits"], second["edited_by"]) == (first["id"], None)
    told = [(m["text"], m["edits"], m["edited_by"]) for m in await talk.said()]
    assert told == [
        ("Hello", None, None),
        ("Paint it blu", None, second["id"]),
        ("Paint it blue", first["id"], None),
        ("Noted.", None, None),
        ("Noted.", None, None),
    ]
    assert len(talk.mouth.requests) == 2
    whole = "\n".join(turn.text for turn in talk.mouth.requests[-1].turns)
    assert asked(talk.mouth) == "Paint it blue"
    assert "Paint it blu\n" not in whole
    assert MARK not in whole


async def test_the_model_is_told_what_an_answered_message_takes_the_place_of(
    served: Served, wording: Wording
) -> None:
    talk = await talk_of(served, [says("I begin.", call("start_work")), NOTED], [FINISH, FINISH])
    gate = talk.work.gate = Gate()
    first = await talk.send("Paint it blu")
    await talk.replies(1)
    await gate.reached()
    [node] = await talk.open_work(first)
    await talk.send("Paint it blue", edits=first["id"])
    await talk.replies(2)
    gate.set()
    await served.world.settle()
    heard = next(t.text for r in talk.work.requests for t in r.turns if MARK in t.text)
    wording({"in the reply": asked(talk.mouth).replace(node, "NODE"), "at work": heard})
    # The work goes on, because nobody has said that it stops.
    assert await talk.board() == [("Paint it blu", "completed")]
    assert "Human (edited later): Paint it blu" in talk.mouth.requests[-1].system


async def test_work_begun_for_the_message_stops_if_the_person_says_so(
    served: Served, wording: Wording
) -> None:
    begins = says("I begin.", call("start_work"))
    talk = await talk_of(served, [begins, begins], [FINISH, FINISH])
    gate = talk.work.gate = Gate()
    first = await talk.send("Sell apples")
    await talk.replies(1)
    await gate.reached()
    [node] = await talk.open_work(first)
    await talk.send("Sell pears", edits=first["id"], stop_work=True)
    assert await talk.open_work(first) == []
    await talk.replies(2)
    gate.set()
    await served.world.settle()
    wording(asked(talk.mouth).replace(node, "NODE"))
    assert await talk.board() == [("Sell apples", "cancelled"), ("Sell pears", "completed")]
    # As any work that a person has stopped, it can go on.
    status, again = await served.ask("POST", f"/nodes/{node}/retry")
    assert (status, again["status"]) == (200, "assigned")


async def test_a_reply_that_is_under_way_starts_nothing_for_the_message_before(
    served: Served,
) -> None:
    begins = says("I begin.", call("start_work"))
    talk = await talk_of(served, [says("Hm."), says("[]"), begins], [FINISH])
    gate = talk.mouth.gate = Gate()
    first = await talk.send("Sell apples")
    await gate.reached()
    await talk.send("Sell pears", edits=first["id"])
    gate.set()
    await served.world.settle()
    assert MARK in asked(talk.mouth)
    assert await talk.board() == [("Sell pears", "completed")]


async def test_words_without_a_reply_reach_work_once_as_edited(served: Served) -> None:
    talk = await talk_of(served, [], [says(call("checkpoint", summary="Half")), FINISH])
    gate = talk.work.gate = Gate()
    await talk.send("Sort the shelf", mode="nudge")
    await gate.reached()
    first = await talk.send("Begin at the lef", mode="nudge")
    assert await talk.refusal("Begin at the left", edits=first["id"]) == (
        422,
        "An edited message gets a reply if the one before did: keep its mode.",
    )
    await talk.send("Begin at the left", mode="nudge", edits=first["id"])
    gate.set()
    await served.world.settle()
    heard = "\n".join(turn.text for turn in talk.work.requests[-1].turns)
    assert "Begin at the left" in heard
    assert "Begin at the lef\n" not in heard
    assert MARK not in heard


async def test_work_that_an_unanswered_message_began_is_known(served: Served) -> None:
    talk = await talk_of(served, [], [FINISH, FINISH])
    gate = talk.work.gate = Gate()
    first = await talk.send("Sort the shelf", mode="nudge")
    await gate.reached()
    [_] = await talk.open_work(first)
    await talk.send("Sort the cellar", mode="nudge", edits=first["id"], stop_work=True)
    gate.set()
    await served.world.settle()
    board = await talk.board()
    assert [status for _, status in board] == ["cancelled", "completed"]
    assert "Sort the cellar" in board[1][0]


async def test_only_the_last_message_of_the_person_in_the_conversation_can_be_edited(
    served: Served, wording: Wording
) -> None:
    talk = await talk_of(served, [NOTED] * 4, [])
    bob = await hired(talk, "bob")
    other = await served.world.found("Wait", start=False)
    first = await talk.send("One")
    await served.world.settle()
    reply = (await talk.said())[-1]
    second = await talk.send("Two", edits=first["id"])
    await talk.send("Three")
    _, elsewhere = await served.ask("POST", f"/agents/{bob}/send", {"message": "Bob?"})
    _, away = await served.ask("POST", f"/agents/{other.coordinator.id}/send", {"message": "Eh?"})
    by_id = {
        "unknown": "msg_nothing",
        "of another team": away["id"],
        "of another conversation": elsewhere["id"],
        "of an agent": reply["id"],
        "edited before": first["id"],
        "not the last": second["id"],
    }
    told = {name: await talk.refusal("New", edits=one) for name, one in by_id.items()}
    assert [status for status, _ in told.values()] == [404, 404, 422, 422, 409, 409]
    wording({name: text.replace(away["id"], "MSG") for name, (_, text) in told.items()})
    status, told_both = await served.ask(
        "POST", f"{talk.path}/send", {"message": "New", "stop_work": True}
    )
    assert (status, "set both" in str(told_both["faults"])) == (422, True)
    assert [m["text"] for m in await talk.said() if m["sender"] == "human"] == [
        "One",
        "Two",
        "Three",
    ]


async def test_another_person_edits_nothing_of_mine(served: Served) -> None:
    talk = await talk_of(served, [NOTED] * 2, [])
    first = await talk.send("One")
    second = SecondPerson(served, *await served.world.store.write(_create))
    status, told = await second.ask(
        "POST", f"{talk.path}/send", {"message": "Two", "edits": first["id"]}
    )
    assert (status, told["detail"]) == (
        422,
        "That message is from human; you can edit your own messages.",
    )
    assert (await second.ask("GET", f"/messages/{first['id']}/work"))[0] == 404


async def test_a_message_to_several_is_edited_for_each_and_keeps_its_files(
    served: Served,
) -> None:
    talk = await talk_of(served, [NOTED] * 6, [])
    bob, eve = [await hired(talk, name) for name in ("bob", "eve")]
    data = base64.b64encode(b"x").decode()
    file = {"name": "a.txt", "media_type": "text/plain", "data": data}
    first = await talk.send("@bob @eve lok", mentions=[bob, eve], attachments=[file])
    await served.world.settle()
    status, told = await talk.refusal("@bob look", edits=first["id"], mentions=[bob])
    assert (status, "goes to those that the one before went to: " in told) == (422, True)
    await talk.send("@bob @eve look", edits=first["id"], mentions=[bob, eve])
    await served.world.settle()
    for agent in (bob, eve):
        _, there = await served.ask("GET", f"/agents/{agent}/conversation")
        [before, after] = [m for m in there if m["sender"] == "human"]
        assert (after["edits"], before["edited_by"]) == (before["id"], after["id"])
        assert after["attachments"] == [file]


async def test_a_model_on_the_wire_is_asked_once_for_what_was_edited(
    tmp_path: Path, database_url: str
) -> None:
    seen: list[str] = []

    def play(request: Seen) -> Says:
        seen.append(request.messages[-1].text)
        return says("I write it down.", call("no_work_needed"))

    async with (
        ModelServer(play) as model,
        serving(
            tmp_path / "home",
            database_url=database_url,
            keys=Keys({"openai": Account(key="sk-test", base_url=model.openai_url)}),
            model="openai/test",
        ) as served,
    ):
        founded = await served.world.found("Run the shop", start=False, model="openai/test")
        path = f"/agents/{founded.coordinator.id}/send"
        _, first = await served.ask("POST", path, {"message": "Buy ten appels"})
        await served.world.settle()
        await served.ask("POST", path, {"message": "Buy ten apples", "edits": first["id"]})
        await served.world.settle()
    assert seen == [
        "Buy ten appels",
        "Buy ten apples\n\n[Runtime] They edited their message before: 'Buy ten appels': this one "
        "takes its place. Answer this one only.",
    ]
