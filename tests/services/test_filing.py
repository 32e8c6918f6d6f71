"""Filing: items of the inbox are archived, snoozed and marked, and snoozed ones come back."""

from datetime import timedelta

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import MessageId
from agiraph.core.domain.messages import Box
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import answers
from agiraph.core.services.mail import filing, inbox
from agiraph.core.services.mail.filing import NOT_HERE, STILL_OPEN, Outcome
from agiraph.testing import World
from tests.services.test_inbox import fill_inbox, read_inbox


async def box(world: World, name: Box) -> list[str]:
    page = await world.store.read(inbox.page, OWNER, box=name)
    return [item.message.text for item in page.items]


async def test_items_are_archived_and_restored_each_with_its_outcome(world: World) -> None:
    founded, [result, question, report] = await fill_inbox(world, "result", "question", "report")
    ids = [result.id, question.id, "msg_none"]

    outcomes = await world.store.write(filing.file, OWNER, ids, "archive")

    assert outcomes == [
        Outcome(id=result.id),
        Outcome(id=question.id, reason=STILL_OPEN),
        Outcome(id="msg_none", reason=NOT_HERE),
    ]
    assert await read_inbox(world) == [
        ("question 2", "unread", True),
        ("report 3", "unread", False),
    ]
    assert await box(world, "archived") == ["result 1"]
    assert await world.store.read(inbox.count_unread, OWNER) == 2
    await world.store.write(filing.file, OWNER, [result.id], "restore")
    await world.store.write(filing.file, OWNER, [result.id, report.id], "unread")
    assert await box(world, "archived") == []
    assert [one[0] for one in await read_inbox(world)] == ["question 2", "report 3", "result 1"]
    assert await world.store.read(inbox.count_unread, OWNER) == 3
    told = [e.data for e in await world.events(founded.team.id) if e.type == "message.filed"]
    assert told == [
        {"message_ids": [result.id], "filing": "archive"},
        {"message_ids": [result.id], "filing": "restore"},
        {"message_ids": [result.id, report.id], "filing": "unread"},
    ]


async def test_a_snoozed_item_comes_back_by_itself_as_unread(world: World) -> None:
    kinds = ("result", "question", "report")
    founded, [result, question, _] = await fill_inbox(world, *kinds)
    await world.store.write(inbox.mark_read, OWNER, result.id)
    until = world.clock.now() + timedelta(minutes=5)

    await world.store.write(filing.file, OWNER, [result.id, question.id], "snooze", until=until)

    assert await read_inbox(world) == [("report 3", "unread", False)]
    assert await box(world, "snoozed") == ["question 2", "result 1"]
    assert await world.store.read(inbox.count_unread, OWNER) == 1
    await world.advance(minutes=5)
    # What came back stands before newer items.
    assert await read_inbox(world) == [
        ("question 2", "unread", True),
        ("result 1", "unread", False),
        ("report 3", "unread", False),
    ]
    assert await box(world, "snoozed") == []
    told = [e.data for e in await world.events(founded.team.id) if e.type == "message.filed"]
    assert {"message_ids": [result.id], "filing": "return"} in told
    pages = [await world.store.read(inbox.page, OWNER, limit=1)]
    while pages[-1].cursor is not None:
        after = pages[-1].cursor
        pages.append(await world.store.read(inbox.page, OWNER, limit=1, after=after))
    assert [p.items[0].message.text for p in pages] == ["question 2", "result 1", "report 3"]


async def test_an_item_that_is_restored_or_archived_does_not_come_back_as_unread(
    world: World,
) -> None:
    _, [woken, archived] = await fill_inbox(world, "result", "report")
    ids: list[str] = [woken.id, archived.id]
    until = world.clock.now() + timedelta(hours=1)
    await world.store.write(filing.file, OWNER, ids, "snooze", until=until)
    await world.store.write(filing.file, OWNER, [woken.id], "restore")
    await world.store.write(filing.file, OWNER, [archived.id], "archive")
    await world.advance(hours=2)
    assert await read_inbox(world) == [("result 1", "read", False)]
    assert await box(world, "archived") == ["report 2"]


async def test_a_snoozed_item_that_is_marked_still_comes_back_at_its_time(world: World) -> None:
    _, [result, report] = await fill_inbox(world, "result", "report")
    until = world.clock.now() + timedelta(hours=1)
    await world.store.write(filing.file, OWNER, [result.id, report.id], "snooze", until=until)
    await world.store.write(filing.file, OWNER, [result.id], "read")
    await world.store.write(filing.file, OWNER, [report.id], "unread")
    assert await world.store.read(inbox.count_unread, OWNER) == 0
    await world.advance(hours=1)
    assert await read_inbox(world) == [("report 2", "unread", False), ("result 1", "unread", False)]
    assert await world.store.read(inbox.count_unread, OWNER) == 2


async def test_a_snoozed_question_that_was_answered_does_not_come_back_as_unread(
    world: World,
) -> None:
    founded, [question] = await fill_inbox(world, "question")
    until = world.clock.now() + timedelta(hours=1)
    await world.store.write(filing.file, OWNER, [question.id], "snooze", until=until)
    await world.store.write(answers.answer_question, question.id, "Yes", person_id=OWNER)
    await world.advance(hours=1)
    told = [e.data for e in await world.events(founded.team.id) if e.type == "message.filed"]
    assert [one["filing"] for one in told] == ["snooze"]


async def test_a_filter_names_team_and_kind(world: World) -> None:
    founded, _ = await fill_inbox(world, "result", "report", "result")
    page = await world.store.read(inbox.page, OWNER, kind="report", team_id=founded.team.id)
    assert [item.message.text for item in page.items] == ["report 2"]
    other = await world.found("Other", start=False)
    page = await world.store.read(inbox.page, OWNER, team_id=other.team.id)
    assert page.items == []


SENSELESS = [
    (["a", "a"], "archive", None, "named twice"),
    (["a"], "archive", 1, "send it with `snooze` only"),
    (["a"], "snooze", None, "send it with `snooze` only"),
    (["a"], "snooze", -1, "the next 366 days"),
    (["a"], "snooze", 24 * 400, "the next 366 days"),
    ([f"m{n}" for n in range(501)], "read", None, "at most 500"),
]


async def test_what_cannot_be_meant_is_refused(world: World) -> None:
    for ids, action, hours, wrong in SENSELESS:
        until = None if hours is None else world.clock.now() + timedelta(hours=hours)
        with pytest.raises(Refused, match=wrong):
            await world.store.write(filing.file, OWNER, ids, action, until=until)


async def test_nobody_files_the_items_of_another_person(world: World) -> None:
    _, [result] = await fill_inbox(world, "result")
    outcomes = await world.store.write(filing.file, "person_x", [MessageId(result.id)], "archive")
    assert outcomes == [Outcome(id=result.id, reason=NOT_HERE)]
