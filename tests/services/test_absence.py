"""Absence, channel and time limit: what reaches a person, when, and what becomes of a question."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.messages import Draft, Message, MessageKind
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.records.channels import Channel
from agiraph.core.domain.work import Budget, NodeStatus
from agiraph.core.services.lifecycle import digest, settings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import absence, bus
from agiraph.core.store import deliveries
from agiraph.core.store.engine.connect import open_store
from agiraph.features.channels.kinds.configured import Terminal
from agiraph.features.knowledge.verbs import items
from agiraph.testing import World, call, says
from tests.tools.strangers import undecided
from tests.wording import Wording, refusals_of

ASK = call("ask_human", question="Blue or green?", options=["blue", "green"])


def asks(**limits: object):
    return call("ask_human", question="Blue or green?", **limits)


DONE = says(call("finish", summary="Painted."))


@asynccontextmanager
async def with_channels(path: Path, url: str, **channels: Channel) -> AsyncIterator[World]:
    async with World(
        path / "home", database_url=url, features={"channels": channels}, easy_endings=True
    ) as world:
        world.script("ada")
        yield world


async def tell(world: World, founded: NewTeam, text: str, kind: MessageKind) -> Message:
    return await world.store.write(
        bus.send,
        Draft(
            team_id=founded.team.id,
            sender=founded.coordinator.id,
            recipient=OWNER,
            text=text,
            kind=kind,
        ),
    )


def terminal(lines: list[str], *kinds: MessageKind) -> Terminal:
    write: Callable[[str], None] = lines.append
    return Terminal(write=write, kinds=frozenset(kinds)) if kinds else Terminal(write=write)


async def test_the_notice_of_a_digest_is_sent_after_the_quiet_hours_as_a_briefing_is(
    tmp_path: Path, database_url: str
) -> None:
    lines: list[str] = []
    async with with_channels(tmp_path, database_url, here=terminal(lines)) as world:
        founded = await world.found("Wait", start=False)
        await world.store.write(settings.change, founded.team.id, quiet_hours="11:30-13:00")
        # They come back in the middle of the quiet hours.
        back = world.clock.now().replace(hour=12, minute=0)
        await world.store.write(absence.leave, OWNER, back)
        about = {"author": founded.coordinator.id, "label": of_page("https://example.com/")}
        await world.store.write(items.learn, founded.coordinator, "fact", "Rye rose.", **about)
        await world.store.write(digest.schedule, founded.team.id)
        await world.advance(hours=1)
        await tell(world, founded, "A briefing", "briefing")
        await tell(world, founded, "Now?", "question")
        due = {
            message.kind: delivery.due_at - back
            for message in await world.inbox()
            for delivery in await world.store.read(deliveries.of_message, message.id)
        }
    hour = timedelta(hours=1)
    assert due == {"report": hour, "briefing": hour, "question": timedelta()}


async def test_nothing_is_sent_to_a_person_who_is_away_and_all_of_it_when_they_are_back_early(
    tmp_path: Path, database_url: str
) -> None:
    lines: list[str] = []
    async with with_channels(tmp_path, database_url, here=terminal(lines)) as world:
        founded = await world.found("Wait", start=False)
        until = world.clock.now() + timedelta(days=7)
        await world.store.write(absence.leave, OWNER, until)
        for kind in ("question", "briefing"):
            sent = await tell(world, founded, f"A {kind}", kind)
            [waiting] = await world.store.read(deliveries.of_message, sent.id)
            assert (waiting.status, waiting.due_at) == ("queued", until)
        await world.settle()
        assert (lines, len(await world.inbox())) == ([], 2)

        world.clock.advance(days=1)
        back = await world.store.write(absence.leave, OWNER, None)
        await world.settle()
        assert back.away_until is None
    assert [line.partition("]")[0] for line in lines] == ["[question", "[briefing"]


async def test_an_absence_ends_by_itself(world: World) -> None:
    until = world.clock.now() + timedelta(days=2)
    await world.store.write(absence.leave, OWNER, until)
    assert await world.store.read(absence.until, OWNER) == until
    world.clock.advance(days=2)
    assert await world.store.read(absence.until, OWNER) is None


@pytest.mark.parametrize(("days", "why"), [(-1, "is past"), (5000, "too far away")])
async def test_an_absence_ends_at_a_time_to_come(world: World, days: int, why: str) -> None:
    with pytest.raises(Refused, match=why):
        await world.store.write(absence.leave, OWNER, world.clock.now() + timedelta(days=days))


async def test_questions_of_a_team_go_to_its_channel_and_other_messages_to_all(
    tmp_path: Path, database_url: str
) -> None:
    phone: list[str] = []
    mail: list[str] = []
    channels = {"phone": terminal(phone), "mail": terminal(mail)}
    async with with_channels(tmp_path, database_url, **channels) as world:
        founded = await world.found("Wait", start=False)
        other = await world.found("Wait, too", start=False)
        await world.store.write(settings.change, founded.team.id, channel="phone")
        await tell(world, founded, "A", "question")
        await tell(world, founded, "B", "approval")
        await tell(world, founded, "C", "briefing")
        await tell(world, other, "D", "question")
        await world.settle()
    assert [line.partition("]")[0][1:] for line in phone] == [
        *("question", "approval", "briefing", "question")
    ]
    assert [line.partition("]")[0][1:] for line in mail] == ["briefing", "question"]


async def test_a_team_whose_channel_is_gone_asks_through_all_others(tmp_path: Path) -> None:
    # Only a process that is alone on its database knows that a channel is gone.
    database_url = f"sqlite:///{tmp_path / 'agiraph.db'}"
    lines: list[str] = []
    async with with_channels(tmp_path, database_url, phone=terminal([]), a=terminal([])) as world:
        founded = await world.found("Wait", start=False)
        await world.store.write(settings.change, founded.team.id, channel="phone")
    later = {"mail": terminal(lines), "b": terminal(lines)}
    async with World(
        tmp_path / "home",
        database_url=database_url,
        features={"channels": later},
        easy_endings=True,
    ) as world:
        await tell(world, founded, "A", "question")
        await world.settle()
    assert len(lines) == 2


WRONG_SETTINGS = [
    {"channel": "fax"},
    {"channel": "news"},
    *({"quiet_hours": h} for h in ("late", "22-7", "24:00-07:00", "07:00-07:00")),
    {"quiet_hours": "00:00-24:00"},
    *({"quiet_hours": "22:00-07:00", "quiet_zone": z} for z in ("Mars/Base", "../x", "")),
    {"answer_within_s": 5.0},
]


async def test_a_setting_that_cannot_be_followed_is_refused(
    tmp_path: Path, wording: Wording
) -> None:
    url = f"sqlite:///{tmp_path / 'agiraph.db'}"
    channels = {"phone": terminal([]), "news": terminal([], "briefing")}
    async with with_channels(tmp_path, url, **channels) as world:
        founded = await world.found("Wait", start=False)
        change = partial(world.store.write, settings.change, founded.team.id)
        wording(await refusals_of(WRONG_SETTINGS, lambda changes: change(**changes)))
        assert await world.team(founded.team.id) == founded.team


async def test_new_quiet_hours_count_for_briefings_that_wait_already(
    tmp_path: Path, database_url: str
) -> None:
    lines: list[str] = []
    async with with_channels(tmp_path, database_url, here=terminal(lines)) as world:
        founded = await world.found("Wait", start=False)
        await world.store.write(settings.change, founded.team.id, quiet_hours="08:00-20:00")
        await tell(world, founded, "Rates rose", "briefing")
        await world.settle()
        assert lines == []
        await world.store.write(settings.change, founded.team.id, quiet_hours="")
        await world.settle()
    assert len(lines) == 1


async def test_a_briefing_whose_quiet_hours_ended_while_nothing_ran_is_sent_at_the_next_start(
    tmp_path: Path, database_url: str
) -> None:
    lines: list[str] = []
    async with with_channels(tmp_path, database_url, here=terminal(lines)) as world:
        founded = await world.found("Wait", start=False)
        await world.store.write(settings.change, founded.team.id, quiet_hours="08:00-10:00")
        await tell(world, founded, "Rates rose", "briefing")
        await world.settle()
        assert lines == []
        await world.stop()
        world.clock.advance(hours=23, minutes=30)  # the quiet hours of the next day have begun
        # What a command does without a server, which computes all due times anew.
        store = await open_store(database_url, world.clock)
        await store.write(absence.leave, OWNER, None)
        await store.close()
        await world.start()
        await world.settle()
    assert len(lines) == 1


async def test_a_briefing_that_waits_for_the_person_is_not_sent_in_quiet_hours(
    tmp_path: Path, database_url: str
) -> None:
    lines: list[str] = []
    async with with_channels(tmp_path, database_url, here=terminal(lines)) as world:
        founded = await world.found("Wait", start=False)
        await world.store.write(settings.change, founded.team.id, quiet_hours="10:00-12:00")
        await world.store.write(absence.leave, OWNER, world.clock.now() + timedelta(days=1))
        await tell(world, founded, "Rates rose", "briefing")
        world.clock.advance(hours=2)
        await world.store.write(absence.leave, OWNER, None)
        await world.settle()
        assert lines == []
        world.clock.advance(hours=1)
        await world.settle()
    assert len(lines) == 1


async def test_a_muted_team_sends_nothing_until_it_is_unmuted_or_its_time_is_over(
    tmp_path: Path, database_url: str
) -> None:
    lines: list[str] = []
    async with with_channels(tmp_path, database_url, here=terminal(lines)) as world:
        founded = await world.found("Wait", start=False)
        team, hour = founded.team.id, timedelta(hours=1)
        await world.store.write(settings.change, team, muted_until=world.clock.now() + hour)
        await tell(world, founded, "Which one?", "question")
        await world.settle()
        assert lines == []
        await world.store.write(settings.change, team, muted_until=None)
        await world.settle()
        assert len(lines) == 1
        await world.store.write(settings.change, team, muted_until=world.clock.now() + hour)
        await tell(world, founded, "And which colour?", "question")
        await world.settle()
        assert len(lines) == 1
        world.clock.advance(hours=1)
        await world.settle()
    assert len(lines) == 2


async def test_a_question_that_nobody_answers_in_time_goes_on_with_its_default(
    world: World,
) -> None:
    ada = world.script("ada", says(asks(default="green", timeout_minutes=30)), DONE)
    founded = await world.found("Paint the fence", budget=Budget(seconds=60))
    await world.settle()
    [question] = await world.questions(founded.team.id)
    assert question.text == "Blue or green?\n\nIf nobody answers in time, I do this: green"
    [node] = await world.board(founded.team.id)
    assert (node.status, node.waiting_reason) == (
        NodeStatus.WAITING,
        "asked the human: Blue or green?",
    )
    await world.pass_time(minutes=29)
    assert (await world.node(node.id)).status is NodeStatus.WAITING
    await world.pass_time(minutes=1)
    assert ada.heard == (
        "The human has not answered within 30 minutes. Do now what you said you would: green\n"
        "The question stays in their inbox, and an answer that comes while you work reaches you as "
        "a message. Do not ask it again."
    )
    # The wait took none of the node's time limit, and the question is still there, closed.
    assert (await world.node(node.id)).status is NodeStatus.COMPLETED
    assert [m.id for m in await undecided(world, founded)] == [question.id]
    assert await world.questions(founded.team.id) == []


async def test_an_answer_in_time_ends_the_wait_and_the_time_limit_does_nothing_more(
    world: World,
) -> None:
    ada = world.script("ada", says(asks(timeout_minutes=30)), says("Blue it is."), DONE)
    founded = await world.found("Paint the fence")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "blue")
    await world.settle()
    assert ada.requests[1].turns[-1].text == "blue"
    await world.pass_time(hours=1)
    [node] = await world.board(founded.team.id)
    said = [turn.text for turn in await world.turns(node.id)]
    assert not any("has not answered" in text for text in said)


async def test_a_late_answer_reaches_the_agent_as_a_message(world: World) -> None:
    goes_on = says(call("ask_human", question="And the gate?"))
    ada = world.script("ada", says(asks(timeout_minutes=1)), goes_on, DONE)
    founded = await world.found("Paint the fence", mode="infinite")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.pass_time(minutes=1)
    await world.answer(question, "blue")
    await world.settle()
    assert "(answering 'Blue or green?') blue" in ada.requests[-1].turns[-1].text


async def test_an_answer_after_the_end_reaches_the_agent_if_the_person_wants_it(
    world: World,
) -> None:
    ada = world.script("ada", says(asks(timeout_minutes=1)), DONE, DONE)
    founded = await world.found("Paint the fence", mode="infinite")
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.pass_time(minutes=1)
    await world.answer(question, "blue")
    await world.settle()
    assert len(ada.requests) == 2
    [offer] = await world.questions(founded.team.id)
    await world.answer(offer, offer.options[0])
    await world.settle()
    assert "(answering 'Blue or green?') blue" in ada.requests[-1].turns[-1].text


async def test_a_model_that_asks_again_after_the_time_limit_is_told_at_once(world: World) -> None:
    again = asks(timeout_minutes=5)
    world.script("ada", says(again), says(again), says(again), DONE)
    founded = await world.found("Paint the fence")
    await world.settle()
    await world.pass_time(minutes=5)
    [node] = await world.board(founded.team.id)
    assert node.status is NodeStatus.COMPLETED
    assert len(await undecided(world, founded)) == 1


@pytest.mark.parametrize(
    ("within_s", "limits", "minutes"),
    [
        (3600.0, {}, 60),  # the team's limit
        (3600.0, {"timeout_minutes": 600}, 60),  # a person's setting is the longest wait
        (3600.0, {"timeout_minutes": 5}, 5),
        (None, {"default": "green"}, 24 * 60),
    ],
)
async def test_the_shorter_limit_of_asker_and_team_counts(
    world: World, within_s: float | None, limits: dict[str, object], minutes: int
) -> None:
    ada = world.script("ada", says(asks(**limits)), DONE)
    founded = await world.found("Paint the fence", start=False)
    if within_s is not None:
        await world.store.write(settings.change, founded.team.id, answer_within_s=within_s)
    await world.say(founded.coordinator.id, "Paint it", team_id=founded.team.id)
    await world.settle()
    await world.pass_time(minutes=minutes)
    told = [turn.text for turn in ada.requests[-1].turns]
    assert any(f"within {minutes:,} minutes" in text for text in told)


async def test_an_agent_that_asks_somebody_away_is_told_until_when(world: World) -> None:
    await world.store.write(absence.leave, OWNER, world.clock.now() + timedelta(days=3))
    ada = world.script("ada", says(asks(timeout_minutes=5)), DONE)
    founded = await world.found("Paint the fence")
    await world.settle()
    [node] = await world.board(founded.team.id)
    reason = "asked the human (away until 2026-01-08 09:00 UTC): Blue or green?"
    assert node.waiting_reason == reason
    await world.pass_time(minutes=5)
    assert ada.heard.startswith(
        "The human (away until 2026-01-08 09:00 UTC) has not answered within 5 minutes. Go on"
    )


async def test_a_question_without_a_limit_waits_for_as_long_as_it_takes(world: World) -> None:
    await world.store.write(absence.leave, OWNER, world.clock.now() + timedelta(days=3))
    world.script("ada", says(ASK), DONE)
    founded = await world.found("Paint the fence")
    await world.settle()
    await world.pass_time(days=60)
    [node] = await world.board(founded.team.id)
    assert node.status is NodeStatus.WAITING
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "blue")
    await world.settle()
    assert (await world.node(node.id)).status is NodeStatus.COMPLETED
