"""Decided messages: the calls of a reply say what becomes of a message, in any language."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.core.domain.errors import ModelError, Refused
from agiraph.core.domain.messages import Message
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.models.base import Request
from agiraph.testing import Call, Says, World, call, says
from agiraph.testing.scripted import ScriptedModel
from tests.runtime.test_reply_and_work import FINISH, NO_WORK, give, heard, team_of_two
from tests.runtime.waiting import Gate, until
from tests.scenarios.thread_queries import shown_text

ORDINARY = [
    "What is the state of the art in solid-state batteries?",
    "What is OpenAI working on?",
    "Wie steht der Euro zum Dollar?",
    "How is the weather in Kyoto going to be?",
    "¿Cómo va la economía de Chile?",
    "Où en est la recherche sur la fusion ?",
    "日本の景気はどうですか？",  # noqa: RUF001
    "电动汽车市场进展如何？",  # noqa: RUF001
    "ما هو وضع سوق النفط؟",
    "भारत की अर्थव्यवस्था कैसी चल रही है?",
]
ALSO = says(call("finish", summary="Also done."))


@pytest.fixture
async def world(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    path = tmp_path / "home"
    async with World(
        path, database_url=database_url, reply_model="scripted/mouth", easy_endings=True
    ) as opened:
        yield opened


async def busy_team(world: World, *lines: Says) -> tuple[NewTeam, ScriptedModel, Gate]:
    """Return a team whose coordinator's model is being asked, and gives these replies then."""
    work = world.script("ada", *lines)
    gate = work.gate = Gate()
    founded = await world.found("Paint the fence")
    await gate.reached()
    return founded, work, gate


async def reply_to(world: World, founded: NewTeam, text: str) -> Message:
    """Say something to the coordinator, wait for the reply and return it."""
    said = await world.chat(founded.coordinator.id, text)

    async def replies() -> list[Message]:
        told = await world.conversation(founded.coordinator)
        return [m for m in told if m.in_reply_to == said.id and m.kind == "message"]

    async def is_answered() -> bool:
        return bool(await replies())

    await until(world, is_answered)
    return (await replies())[0]


def stated(reply: Message) -> list[tuple[str, str, str]]:
    return [(act.kind, act.name, act.words) for act in reply.acts]


@pytest.mark.parametrize("question", ORDINARY)
async def test_an_ordinary_question_becomes_the_work_that_the_reply_asks_for(
    world: World, question: str
) -> None:
    world.script("mouth", says("I look it up.", call("start_work")))
    world.script("ada", FINISH)
    founded = await world.found("Watch the news", start=False)
    reply = await reply_to(world, founded, question)
    await world.settle()
    assert [n.task for n in await world.board(founded.team.id)] == [question]
    assert [kind for kind, _, _ in stated(reply)] == ["started"]


@pytest.mark.parametrize(
    "words",
    [
        "Would you like me to delete the old table?",
        "Soll ich die alte Tabelle löschen?",
        "要我删除旧表吗？",  # noqa: RUF001
        "هل تريد أن أحذف الجدول القديم؟",
        "Ջնջե՞մ այն՞",
        "Rot oder blau? 🎨",
        "¿Borro la tabla vieja? ❤️",
    ],
)
async def test_a_question_in_words_reaches_the_person_in_any_script(
    world: World, words: str
) -> None:
    world.script("ada", says(words), FINISH)
    founded = await world.found("Tidy the database")
    await world.settle()
    [asked] = await world.questions(founded.team.id)
    assert asked.text == words


@pytest.mark.parametrize("words", ["I will tell you at once.", "第一时间告诉你", "Te aviso mañana"])
async def test_words_of_the_reply_start_nothing_beside_a_call_that_says_so(
    world: World, words: str
) -> None:
    promised = call("promise", what="Tell them the result", when="2 days")
    world.script("mouth", says(words, promised, NO_WORK), says(words, NO_WORK))
    world.script("ada")
    founded = await world.found("Watch the news", start=False)
    first = await reply_to(world, founded, "Tell me when it is out.")
    second = await reply_to(world, founded, "Thank you!")
    assert [kind for kind, _, _ in stated(first)] == ["reminder"]
    assert stated(second) == []
    assert await world.board(founded.team.id) == []
    assert await world.inbox() == []


async def test_a_request_beside_open_work_reaches_that_work_if_the_reply_decides_nothing(
    world: World,
) -> None:
    world.script("mouth", says("I'll find a dentist for you."))
    founded, work, gate = await busy_team(world, FINISH, ALSO)
    reply = await reply_to(world, founded, "Please find me a dentist.")
    gate.set()
    await world.settle()
    assert stated(reply) == [
        ("told", "its own work “Paint the fence”", "Please find me a dentist.")
    ]
    assert "[Message from human] Please find me a dentist." in heard(work.requests[-1])
    assert [n.result for n in await world.board(founded.team.id)] == ["Also done."]


async def test_the_decision_that_no_call_made_is_asked_for_once_part_by_part(world: World) -> None:
    parts = [
        {"what": "about_work", "id": "bob", "words": "Tell Bob to use euros."},
        {"what": "new_work", "id": "", "words": "Find me a dentist."},
    ]
    mouth = world.script("mouth", says("Both, gladly."))
    mouth.decision = json.dumps({"parts": parts})
    world.script("ada", FINISH)
    hand = world.script("bob", says(call("checkpoint", summary="1")), FINISH, FINISH)
    gate = hand.gate = Gate()
    founded, bob = await team_of_two(world)
    await give(world, bob, "Count")
    await gate.reached()
    reply = await reply_to(world, founded, "Tell Bob to use euros. Find me a dentist.")
    gate.set()
    await world.settle()
    assert stated(reply) == [
        ("told", "bob", "Tell Bob to use euros."),
        ("started", "Find me a dentist.", ""),
    ]
    assert "[Message from human] Tell Bob to use euros." in heard(hand.requests[-1])
    assert "Find me a dentist." in [n.task for n in await world.board(founded.team.id)]


@pytest.mark.parametrize(
    ("decision", "started"),
    [("Hm.", ["Find me a dentist."]), ('{"parts": [{"what": "chat", "id": "", "words": ""}]}', [])],
)
async def test_the_rest_of_a_message_is_asked_about_if_the_calls_are_about_a_part(
    world: World, decision: str, started: list[str]
) -> None:
    tell = call("tell", node_id="bob", words="Tell Bob to use euros.")
    mouth = world.script("mouth", says("I tell Bob.", tell))
    mouth.decision = decision
    world.script("ada", FINISH)
    hand = world.script("bob", says(call("checkpoint", summary="1")), FINISH, FINISH)
    gate = hand.gate = Gate()
    founded, bob = await team_of_two(world)
    await give(world, bob, "Count")
    await gate.reached()
    reply = await reply_to(world, founded, "Tell Bob to use euros. Find me a dentist.")
    gate.set()
    await world.settle()
    assert [name for kind, name, _ in stated(reply) if kind == "started"] == started
    tasks = [node.task for node in await world.board(founded.team.id)]
    assert tasks[1:] == started


@pytest.mark.parametrize(("what", "identity"), [("about_work", "node_404"), ("stop", "carl")])
async def test_a_part_that_names_nothing_beside_small_talk_is_not_lost(
    world: World, what: str, identity: str
) -> None:
    parts = [
        {"what": "chat", "id": "", "words": "Danke!"},
        {"what": what, "id": identity, "words": "Nimm Euro."},
    ]
    mouth = world.script("mouth", says("Gern."), says("Gern."))
    mouth.decision = json.dumps({"parts": parts})
    work = world.script("ada", FINISH, says(call("checkpoint", summary="1")), FINISH)
    founded = await world.found("Paint the fence", start=False)
    idle = await reply_to(world, founded, "Danke! Nimm Euro.")
    await world.settle()
    assert stated(idle) == [("started", "Nimm Euro.", "")]
    gate = work.gate = Gate()
    await world.say(founded.coordinator.id, "Count.", team_id=founded.team.id)
    await gate.reached()
    busy = await reply_to(world, founded, "Danke! Nimm Euro.")
    gate.set()
    await world.settle()
    assert [(kind, words) for kind, _, words in stated(busy)] == [("told", "Danke! Nimm Euro.")]
    told = heard(work.requests[-1])
    assert "[Message from human] Danke! Nimm Euro." in told
    assert "needs no work" not in told


async def test_without_a_model_a_person_reads_what_work_waits_for_without_ids(
    world: World,
) -> None:
    mouth = world.script("mouth")
    mouth.lines.append(ModelError("It is busy."))
    who = {"agent": "new:scripted/bob", "run_in_background": True}
    gives = call("assign_task", task="Count", description="Count", **who)

    def waits(request: Request) -> Says:
        node = re.findall(r"node_\w+", shown_text(request))[-1]
        return says(call("task_output", id=node, blocking=True))

    world.script("ada", says(gives), waits, FINISH)
    hand = world.script("bob", says(call("publish", summary="41.")))
    gate = hand.gate = Gate()
    founded = await world.found("Watch birds")
    await gate.reached()
    await until(world, lambda: _is_waiting(world, founded))
    reply = await reply_to(world, founded, "Wie läuft es?")
    gate.set()
    await world.settle()
    assert (
        "- Watch birds: coordinator, waiting for less than a minute\n  the result of 'Count'\n"
        in (reply.text)
    )
    assert "node_" not in reply.text


async def _is_waiting(world: World, founded: NewTeam) -> bool:
    assert founded.node is not None
    return (await world.node(founded.node.id)).status is NodeStatus.WAITING


async def test_new_work_knows_what_was_said_and_done_before_it(world: World) -> None:
    world.script("mouth", says("Gladly.", call("start_work")), says("Shorter.", call("start_work")))
    work = world.script("ada", says(call("finish", summary="Herons eat fish. " * 20)), FINISH)
    founded = await world.found("Watch birds", start=False)
    await reply_to(world, founded, "What do herons eat?")
    await world.settle()
    await reply_to(world, founded, "Make it shorter, please.")
    await world.settle()
    first = work.requests[-1]
    assert first.turns[0].text == "Make it shorter, please."
    for known in ("What do herons eat?", "Gladly.", "Herons eat fish. " * 19):
        assert known in first.system
    assert "What do herons eat?" not in work.requests[0].system


async def test_mail_that_began_work_is_not_shown_as_said_before_it(world: World) -> None:
    work = world.script("ada", FINISH, FINISH)
    founded = await world.found("Watch birds", start=False)
    for words in ("What do herons eat?", "And what do storks eat?"):
        await world.say(founded.coordinator.id, words, team_id=founded.team.id)
        await world.settle()
    first = work.requests[-1]
    assert first.turns[0].text == "[Message from human] And what do storks eat?"
    assert "What do herons eat?" in first.system
    assert "And what do storks eat?" not in first.system
    assert "What do herons eat?" not in work.requests[0].system


async def test_a_stop_drops_what_was_said_before_and_names_it(world: World) -> None:
    stop = call("stop_work", node_id="coordinator")
    tell = call("tell", node_id="coordinator")
    world.script("mouth", says("I pass it on.", tell), says("I stop it.", stop))
    founded, work, gate = await busy_team(world, FINISH)
    await reply_to(world, founded, "Also paint the gate.")
    reply = await reply_to(world, founded, "Stop what you're doing.")
    gate.set()
    await world.settle()
    assert stated(reply) == [("stopped", "Paint the fence", "“Also paint the gate.”")]
    assert [n.status for n in await world.board(founded.team.id)] == [NodeStatus.CANCELLED]
    assert len(work.requests) == 1


async def test_a_stop_names_what_was_said_before_it_in_the_same_breath(world: World) -> None:
    stop = call("stop_work", node_id="coordinator")
    mouth = world.script("mouth", says("你好。", NO_WORK), says("停下了。", stop))
    mouth.gate = Gate()
    founded, work, gate = await busy_team(world, FINISH)
    await world.chat(founded.coordinator.id, "你好。")
    await mouth.gate.reached()
    for words in ("把门也刷了。", "不，停下！"):  # noqa: RUF001
        await world.chat(founded.coordinator.id, words)
    mouth.gate.set()
    await until(world, lambda: _is_told(world, founded, "停下了。"))
    gate.set()
    await world.settle()
    [reply] = [m for m in await world.conversation(founded.coordinator) if m.acts]
    assert stated(reply) == [("stopped", "Paint the fence", "“把门也刷了。”")]
    assert len(work.requests) == 1


async def test_a_part_that_names_nothing_beside_a_stop_is_told_to_no_work_that_is_stopping(
    world: World,
) -> None:
    parts = [
        {"what": "stop", "id": "coordinator", "words": "Lass den Zaun."},
        {"what": "answer", "id": "message_404", "words": "Nimm Euro."},
    ]
    mouth = world.script("mouth", says("Gern."), says("Notiert."), says("Ja.", NO_WORK))
    mouth.decision = json.dumps({"parts": parts})
    founded, work, gate = await busy_team(world, FINISH, ALSO)
    first = await reply_to(world, founded, "Lass den Zaun. Nimm Euro.")
    assert stated(first) == [("stopped", "Paint the fence", ""), ("started", "Nimm Euro.", "")]
    mouth.decision = json.dumps({"parts": []})
    # The work that stops has not reached its next step yet, and what comes now is for the other.
    second = await reply_to(world, founded, "Und streich das Tor.")
    assert stated(second) == [("told", "its own work “Nimm Euro.”", "Und streich das Tor.")]
    gate.set()
    await world.settle()
    board = [(n.task, n.status) for n in await world.board(founded.team.id)]
    assert board == [
        ("Paint the fence", NodeStatus.CANCELLED),
        ("Nimm Euro.", NodeStatus.COMPLETED),
    ]
    assert "Und streich das Tor." in heard(work.requests[-1])


async def test_a_reply_that_shows_nothing_is_no_answer(world: World) -> None:
    world.script("mouth", says("\u200b \n"), says("Namaste!", NO_WORK))
    world.script("ada")
    founded = await world.found("Watch the news", start=False)
    assert (await reply_to(world, founded, "नमस्ते")).text == "Namaste!"
    with pytest.raises(Refused, match="empty message"):
        await world.chat(founded.coordinator.id, "\u200b\u2060")


@pytest.mark.parametrize(
    ("made", "done"),
    [
        ([NO_WORK], []),
        ([call("start_work", task="Count in euros")], ["started"]),
        ([call("tell", node_id="Paint the fence")], ["told"]),
        (
            [call("start_work", task="Buy euros"), call("tell", node_id="coordinator")],
            ["started", "told"],
        ),
    ],
)
async def test_open_work_hears_a_correction_whatever_the_reply_made_of_it(
    world: World, made: list[Call], done: list[str]
) -> None:
    world.script("mouth", says("Passed on.", *made))
    founded, work, gate = await busy_team(world, FINISH, FINISH, ALSO)
    reply = await reply_to(world, founded, "Please use euros.")
    gate.set()
    await world.settle()
    assert sorted(kind for kind, _, _ in stated(reply)) == done
    told = heard(work.requests[1])
    assert "Paint the fence" in told
    assert (
        "[Message from human] Please use euros.\n[Runtime] You have replied to them: 'Passed on.'."
        in told
    )
    assert ("needs no work" in told) is (not done)
    assert ("→ Started: " in told) is ("started" in done)


async def reply_after_it_was_read(
    world: World, *made: Call
) -> tuple[NewTeam, ScriptedModel, ScriptedModel]:
    """Let a reply make these calls when open work has read its message already; return the models
    of reply and work. The work's one is being asked for its next step."""
    mouth = world.script("mouth", says("Gladly.", *made))
    mouth.gate = Gate()
    step = says(call("checkpoint", summary="1"))
    founded, work, gate = await busy_team(world, step, step, FINISH, ALSO, ALSO)
    said = await world.chat(founded.coordinator.id, "Find me a dentist, and use euros.")
    await mouth.gate.reached()
    work.gate = Gate()
    gate.set()
    await work.gate.reached()
    assert said.text in heard(work.requests[1])
    mouth.gate.set()
    await until(world, lambda: _is_told(world, founded, "Gladly."))
    return founded, mouth, work


DENTIST = call("start_work", task="Find a dentist")
DONE_WITH = "With that reply this was done"


async def test_work_that_has_read_a_message_hears_what_the_reply_did_besides(world: World) -> None:
    euros = call("tell", node_id="Paint the fence", words="use euros")
    founded, _, work = await reply_after_it_was_read(world, DENTIST, euros)
    [_, reply] = await world.conversation(founded.coordinator)
    assert [kind for kind, _, _ in stated(reply)] == ["started", "told"]
    assert work.gate is not None
    work.gate.set()
    await world.settle()
    assert heard(work.requests[2]).endswith(
        "[Message from system (notice)] [Runtime] You have replied to them: 'Gladly.'. "
        f"{DONE_WITH}, so do not do it again:\n→ Started: Find a dentist"
    )


async def test_what_a_reply_did_is_told_nowhere_if_the_work_that_should_hear_it_is_stopped(
    world: World,
) -> None:
    founded, mouth, work = await reply_after_it_was_read(world, DENTIST)
    hearer, _ = await world.board(founded.team.id)
    await world.store.write(endings.cancel, hearer.id)
    assert work.gate is not None
    work.gate.set()
    await world.settle()
    mouth.lines.append(says("It is done.", NO_WORK))
    await reply_to(world, founded, "How is it going?")
    await world.say(founded.coordinator.id, "Count birds.", team_id=founded.team.id)
    await world.settle()
    assert [(n.title, str(n.status)) for n in await world.board(founded.team.id)] == [
        (hearer.title, "cancelled"),
        ("Find a dentist", "completed"),
        ("Message from human", "completed"),
    ]
    shown = [request for model in (mouth, work) for request in model.requests]
    assert "Count birds." in heard(shown[-1])
    assert [r for r in shown if DONE_WITH in r.system + heard(r)] == []


@pytest.mark.parametrize(
    ("made", "done"),
    [
        (call("answer"), ("answered", "Which year?", "How is it going?")),
        (call("stop_work", node_id="coordinator"), ("stopped", "Write the history", "")),
    ],
)
async def test_an_act_that_nobody_asked_for_is_stated_under_the_reply(
    world: World, made: Call, done: tuple[str, str, str]
) -> None:
    world.script("ada", says(call("ask_human", question="Which year?")), FINISH)
    world.script("mouth", says("It goes well.", made))
    founded = await world.found("Write the history")
    await world.settle()
    reply = await reply_to(world, founded, "How is it going?")
    assert stated(reply) == [done]


async def test_every_monday_is_set_by_a_reply_and_the_person_is_told_each_time(
    world: World,
) -> None:
    every = call("promise", what="Summarise the papers", repeats="0 9 * * MON", zone="Asia/Tokyo")
    world.script("mouth", says("Every Monday, then.", every))
    world.script("ada", *[says(call("finish", summary=f"Week {n}.")) for n in (1, 2)])
    founded = await world.found("Watch the papers", start=False)
    reply = await reply_to(world, founded, "Every Monday at nine, summarise the papers.")
    assert stated(reply) == [
        (
            "trigger",
            "2026-01-12 09:00 Asia/Tokyo, then 2026-01-19 09:00 Asia/Tokyo and so on",
            "Summarise the papers",
        )
    ]
    for week in (1, 2):
        world.clock.advance(days=7)
        await until(world, lambda week=week: _is_told(world, founded, f"Week {week}."))
    assert [t.fired for t in await world.triggers(founded.team.id)] == [2]


async def _is_told(world: World, founded: NewTeam, text: str) -> bool:
    return any(text in m.text for m in await world.conversation(founded.coordinator))
