"""What a reply did, and how a person undoes it over HTTP."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services import access
from agiraph.core.services.lifecycle import routing
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.testing import Says, World, call, says
from agiraph.testing.clock import ManualClock
from agiraph.testing.scripted import ScriptedModel
from tests.api.serving import Served, serving
from tests.api.test_persons import SecondPerson, _create
from tests.habits.kit import ASK, ASK_MORE, assign
from tests.services.triggers import create_trigger

FINISHES = says(call("finish", summary="Done as you wish."))
HEARD = says("I hear it.", call("no_work_needed", reason="heard"))


@dataclass(slots=True)
class Talk:
    """A team of a served world whose coordinator answers a person."""

    served: Served
    founded: NewTeam
    model: ScriptedModel

    @property
    def world(self) -> World:
        return self.served.world

    async def reply_to(self, text: str) -> dict[str, Any]:
        await self.served.ask(
            "POST", f"/agents/{self.founded.coordinator.id}/send", {"message": text}
        )
        await self.world.settle()
        return await self.last_reply()

    async def last_reply(self) -> dict[str, Any]:
        _, said = await self.served.ask(
            "GET", f"/agents/{self.founded.coordinator.id}/conversation"
        )
        return next(m for m in reversed(said) if m["acts"])

    async def undo(self, place: int = 0) -> tuple[int, Any]:
        reply = await self.last_reply()
        told = await self.served.ask("POST", f"/messages/{reply['id']}/acts/{place}/undo")
        await self.world.settle()
        return told

    async def refusal(self) -> str:
        status, problem = await self.undo()
        assert status == 409
        return problem["detail"]

    async def passes(self, **time: float) -> None:
        await self.world.pass_time(**time)

    async def open_items(self) -> list[str]:
        _, page = await self.served.ask("GET", "/inbox")
        return [i["message"]["text"] for i in page["items"] if i["needs_answer"]]

    async def inbox_kinds(self) -> list[str]:
        _, page = await self.served.ask("GET", "/inbox")
        return [i["message"]["kind"] for i in page["items"]]

    async def statuses(self) -> list[str]:
        return [str(n.status) for n in await self.world.board(self.founded.team.id)]

    def heard(self, model: ScriptedModel | None = None) -> str:
        return "\n".join(turn.text for turn in (model or self.model).requests[-1].turns)


@pytest.fixture
async def on_each(tmp_path: Path, database_url: str) -> AsyncIterator[Served]:
    home, clock = tmp_path / "home", ManualClock()
    async with serving(home, database_url=database_url, clock=clock) as opened:
        yield opened


async def talk(served: Served, *lines: Says, start: bool = False) -> Talk:
    model = served.world.script("ada", *lines)
    model.decision = '{"parts": [{"what": "chat", "id": "", "words": ""}]}'
    founded = await served.world.found("Paint the office", start=start)
    await served.world.settle()
    return Talk(served, founded, model)


def acts(reply: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(act["kind"], act["text"], act["is_undone"]) for act in reply["acts"]]


async def test_undone_work_is_cancelled_once_and_leaves_nothing_in_the_inbox(
    on_each: Served,
) -> None:
    begins = says("I look for one.", call("start_work", task="Find a dentist"))
    it = await talk(on_each, begins, ASK)
    assert acts(await it.reply_to("Find me a dentist, please")) == [
        ("started", "Started: Find a dentist", False)
    ]
    assert await it.open_items() == ["What now?"]
    status, reply = await it.undo()
    assert status == 200
    assert acts(reply) == [("started", "Started: Find a dentist", True)]
    assert acts(await it.last_reply()) == acts(reply)
    assert await it.statuses() == ["cancelled"]
    assert await it.open_items() == []
    assert "failure" not in await it.inbox_kinds()
    assert await it.refusal() == "Undone before: Started: Find a dentist"
    events = await it.world.events(it.founded.team.id)
    [undone] = [event.data for event in events if event.type == "reply.act_undone"]
    assert (undone["place"], undone["kind"], undone["message_id"]) == (0, "started", reply["id"])


async def test_work_that_has_ended_cannot_be_undone_and_says_so(on_each: Served) -> None:
    begins = says("I look for one.", call("start_work", task="Find a dentist"))
    it = await talk(on_each, begins, FINISHES)
    await it.reply_to("Find me a dentist, please")
    assert await it.refusal() == "That work is completed already; there is nothing to undo."
    assert acts(await it.last_reply())[0][2] is False


async def test_words_that_are_taken_back_are_told_to_the_work(on_each: Served) -> None:
    tells = says("I pass it on.", call("tell", node_id="coordinator"))
    it = await talk(on_each, ASK, tells, ASK_MORE, FINISHES, start=True)
    assert acts(await it.reply_to("Use euros")) == [
        ("told", "Told its own work “Paint the office”: “Use euros”", False)
    ]
    assert (await it.undo())[0] == 200
    await it.served.world.answer((await it.world.questions(it.founded.team.id))[-1], "Go on.")
    await it.world.settle()
    assert "takes back what reached you from them: 'Use euros'" in it.heard()


async def test_words_to_work_that_has_ended_cannot_be_taken_back(on_each: Served) -> None:
    tells = says("I pass it on.", call("tell", node_id="coordinator"))
    it = await talk(on_each, ASK, tells, FINISHES, start=True)
    await it.reply_to("Use euros")
    assert await it.refusal() == (
        "The work that was told has ended; nobody there hears it any more."
    )


async def test_a_stopped_goal_goes_on_with_what_was_stopped_below_it(on_each: Served) -> None:
    bob = on_each.world.script("bob", ASK, says(call("publish", summary="Walls painted.")))
    delegates = says(assign("Paint the walls", run_in_background=True))
    stops = says("I stop it.", call("stop_work", node_id="coordinator"))
    it = await talk(on_each, delegates, ASK_MORE, stops, ASK_MORE, FINISHES, start=True)
    assert acts(await it.reply_to("Stop it"))[0][:2] == ("stopped", "Stopped: Paint the office")
    assert await it.statuses() == ["cancelled", "cancelled"]
    status, reply = await it.undo()
    assert (status, reply["acts"][0]["is_undone"]) == (200, True)
    statuses = await it.statuses()
    assert statuses[1] == "completed", statuses
    assert statuses[0] in ("waiting", "completed")
    assert "takes back that this work was stopped: go on" in it.heard(bob)
    assert "These tasks of yours go on too: 'Paint the walls'" in it.heard()
    assert (await it.world.team(it.founded.team.id)).status == "active"


async def test_an_answer_that_is_taken_back_leaves_its_question_open(on_each: Served) -> None:
    answers = says("I pass it on.", call("answer"))
    asks_again = says(call("ask_human", question="What now?"))
    it = await talk(on_each, ASK, answers, ASK_MORE, asks_again, FINISHES, start=True)
    assert acts(await it.reply_to("Blue"))[0][1] == "Answered “What now?” with “Blue”"
    assert await it.open_items() == ["And then?"]
    assert (await it.undo())[0] == 200
    assert sorted(await it.open_items()) == ["And then?", "What now?"]
    [then] = [q for q in await it.world.questions(it.founded.team.id) if q.text == "And then?"]
    await it.world.answer(then, "Varnish.")
    await it.world.settle()
    assert "'Blue' was not meant for it" in it.heard()
    # It asks once more, and waits: the answer that was taken back is not used.
    assert (await it.statuses(), await it.open_items()) == (["waiting"], ["What now?"])
    [open_one] = await it.world.questions(it.founded.team.id)
    await it.world.answer(open_one, "Green.")
    await it.world.settle()
    assert "Green." in it.heard()
    assert await it.statuses() == ["completed"]


async def test_an_answer_to_work_that_has_ended_cannot_be_taken_back(on_each: Served) -> None:
    it = await talk(on_each, ASK, says("Good.", call("answer")), FINISHES, start=True)
    await it.reply_to("Blue")
    assert await it.refusal() == (
        "The work that asked has ended; that answer cannot be taken back any more."
    )


NOTHING_TO_UNDO = "It has fired or ended already; there is nothing to undo."


async def test_a_reminder_is_removed_before_it_fires_and_not_after(on_each: Served) -> None:
    sets = says("I will.", call("promise", what="Call the dentist", when="2 hours"))
    it = await talk(on_each, sets, sets, ASK)
    reply = await it.reply_to("Remind me of the dentist in two hours")
    [act] = reply["acts"]
    assert (act["kind"], act["text"].endswith(": Call the dentist")) == ("reminder", True)
    assert (await it.undo())[0] == 200
    await it.passes(days=1)
    assert await it.statuses() == []
    await it.reply_to("No, do remind me")
    await it.passes(days=1)
    assert await it.refusal() == NOTHING_TO_UNDO
    assert await it.statuses() == ["waiting"]


async def test_a_trigger_that_a_reply_has_set_is_removed(on_each: Served) -> None:
    it = await talk(on_each)
    team, ada = it.founded.team.id, it.founded.coordinator.id
    made = await create_trigger(it.world, it.founded, "scheduled", {"cron": "0 9 * * *"})
    did = Act(kind="trigger", about=made.id, name="every day at 9:00", words="Count the chairs")
    await it.world.store.write(
        bus.send,
        Draft(team_id=team, sender=ada, recipient=OWNER, text="I will.", acts=(did,)),
    )
    assert acts(await it.last_reply()) == [
        ("trigger", "Set up, every day at 9:00: Count the chairs", False)
    ]
    assert (await it.undo())[0] == 200
    await it.passes(days=2)
    _, listed = await it.served.ask("GET", f"/teams/{team}/triggers")
    assert [t["status"] for t in listed if t["id"] == made.id] == ["cancelled"]
    assert await it.statuses() == []


async def test_what_was_remembered_is_forgotten_and_what_was_forgotten_known_again(
    on_each: Served,
) -> None:
    words = "I drink tea with milk every morning"
    remembers = says("Noted.", call("remember", content="Drinks tea with milk", their_words=words))
    it = await talk(on_each, remembers)
    ada = it.founded.coordinator.id

    async def known() -> list[str]:
        _, listed = await it.served.ask("GET", f"/agents/{ada}/memories")
        return [memory["content"] for memory in listed]

    reply = await it.reply_to(words)
    assert acts(reply) == [("remembered", "Remembered: Drinks tea with milk", False)]
    memory = reply["acts"][0]["about"]
    it.model.lines.append(says("Forgotten.", call("forget", memory_id=memory)))
    assert acts(await it.reply_to("Forget that"))[0][0] == "forgot"
    assert await known() == []
    # The first reply's act: what it changed was changed again since.
    status, told = await it.served.ask("POST", f"/messages/{reply['id']}/acts/0/undo")
    assert (status, told["detail"]) == (
        409,
        "It was changed again since then. Change it under Memory.",
    )
    assert (await it.undo())[0] == 200
    assert await known() == ["Drinks tea with milk"]
    assert (await it.served.ask("POST", f"/messages/{reply['id']}/acts/0/undo"))[0] == 200
    assert await known() == []


async def test_only_the_person_who_got_the_reply_undoes_it(on_each: Served) -> None:
    begins = says("I look for one.", call("start_work", task="Find a dentist"))
    it = await talk(on_each, begins, ASK)
    reply = await it.reply_to("Find me a dentist, please")
    bea = SecondPerson(on_each, *await on_each.world.store.write(_create))
    path = f"/messages/{reply['id']}/acts"
    assert (await bea.ask("POST", f"{path}/0/undo"))[0] == 404
    for place in ("1", "-1"):
        assert (await it.served.ask("POST", f"{path}/{place}/undo"))[0] == 404
    codes = []
    for scope in ("read", "talk"):
        issued = await on_each.world.store.write(
            access.issue, "human", kind="token", name=scope, scope=scope
        )
        bearer = {"Authorization": f"Bearer {issued.secret}"}
        codes.append((await it.served.ask("POST", f"{path}/0/undo", **bearer))[0])
    assert codes == [403, 200]


async def test_an_act_is_undone_after_a_restart(world: World) -> None:
    world.script("ada", says("I look.", call("start_work", task="Find a dentist")), ASK)
    founded = await world.found("Help", start=False)
    await world.chat(founded.coordinator.id, "Find me a dentist")
    await world.settle()
    await world.restart()
    reply = next(m for m in await world.conversation(founded.coordinator) if m.acts)
    await world.store.write(routing.undo, reply.id, 0)
    await world.settle()
    [node] = await world.board(founded.team.id)
    assert node.status is NodeStatus.CANCELLED


async def test_a_team_whose_goal_is_done_rests_again_when_new_work_is_undone(
    on_each: Served,
) -> None:
    begins = says("I look for one.", call("start_work", task="Find a dentist"))
    it = await talk(on_each, FINISHES, begins, ASK, start=True)

    async def status() -> str:
        return (await it.world.team(it.founded.team.id)).status

    assert await status() == "completed"
    await it.reply_to("Find me a dentist, please")
    assert await status() == "active"
    assert (await it.undo())[0] == 200
    assert await status() == "completed"
