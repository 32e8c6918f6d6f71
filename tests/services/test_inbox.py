"""Inbox: items that need an answer come first; reading removes nothing."""

from typing import Any, cast

import pytest

from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.messages import Draft, Message, MessageKind
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import answers
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus, filing, inbox
from agiraph.core.store.lists.inbox_items import InboxFilter
from agiraph.core.store.tx import Tx
from agiraph.testing import World
from tests.wording import Wording, refusals_of


async def fill_inbox(world: World, *kinds: MessageKind) -> tuple[NewTeam, list[Message]]:
    world.script("ada")
    founded = await world.found("Wait", start=False)
    said = [
        await world.store.write(
            bus.send,
            Draft(
                team_id=founded.team.id,
                sender=founded.coordinator.id,
                recipient=OWNER,
                kind=kind,
                text=f"{kind} {number}",
            ),
        )
        for number, kind in enumerate(kinds, 1)
    ]
    return founded, said


async def read_inbox(world: World) -> list[tuple[str, str, bool]]:
    page = await world.store.read(inbox.page, OWNER)
    return [(item.message.text, item.state, item.needs_answer) for item in page.items]


async def test_items_that_need_an_answer_come_first_then_the_newest(world: World) -> None:
    kinds: tuple[MessageKind, ...] = (
        "result", "question", "briefing", "message", "approval", "failure", "report",
    )  # fmt: skip
    await fill_inbox(world, *kinds)
    assert await read_inbox(world) == [
        ("question 2", "unread", True),
        ("approval 5", "unread", True),
        ("report 7", "unread", False),
        ("failure 6", "unread", False),
        ("briefing 3", "unread", False),
        ("result 1", "unread", False),
    ]
    assert await world.store.read(inbox.count_unread, OWNER) == 6


async def test_reading_and_answering_change_an_items_state_and_remove_nothing(
    world: World,
) -> None:
    _, [result, question, other] = await fill_inbox(world, "result", "question", "question")
    item = await world.store.write(inbox.mark_read, OWNER, result.id)
    assert (item.state, item.message.seen_at) == ("read", world.clock.now())
    await world.store.write(answers.answer_question, question.id, "Yes", person_id=OWNER)
    assert await read_inbox(world) == [
        ("question 3", "unread", True),
        ("question 2", "answered", False),
        ("result 1", "read", False),
    ]
    assert await world.store.read(inbox.count_unread, OWNER) == 1
    assert (await world.store.write(inbox.mark_read, OWNER, other.id)).needs_answer


async def test_reading_an_item_twice_changes_nothing(world: World) -> None:
    founded, [result] = await fill_inbox(world, "result")
    first = await world.store.write(inbox.mark_read, OWNER, result.id)
    world.clock.advance(hours=1)
    assert await world.store.write(inbox.mark_read, OWNER, result.id) == first
    seen = [e for e in await world.events(founded.team.id) if e.type == "message.seen"]
    assert [e.data for e in seen] == [{"message_ids": [result.id]}]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
async def test_pages_show_every_item_once_in_order(world: World, limit: int) -> None:
    kinds: tuple[MessageKind, ...] = ("question", "result", "question", "failure", "question")
    await fill_inbox(world, *kinds)
    cursor, seen = "", list[str]()
    while cursor is not None:
        page = await world.store.read(inbox.page, OWNER, after=cursor, limit=limit)
        assert len(page.items) <= limit
        seen += [item.message.text for item in page.items]
        cursor = page.cursor
    assert seen == ["question 1", "question 3", "question 5", "failure 4", "result 2"]


WRONG_PAGES = [
    {"limit": 0},
    {"limit": 501},
    {"after": "msg_1"},
    {"after": "rest:"},
]


async def test_an_invalid_page_request_is_refused(world: World, wording: Wording) -> None:
    wording(await refusals_of(WRONG_PAGES, lambda one: world.store.read(inbox.page, OWNER, **one)))


async def test_only_inbox_items_can_be_marked_as_read(world: World) -> None:
    _, [message] = await fill_inbox(world, "message")
    for wrong in (message.id, "msg_0"):
        with pytest.raises(NotFound, match="There is no inbox item"):
            await world.store.write(inbox.mark_read, OWNER, wrong)


class _Counted:
    """Counts the statements of a transaction."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.statements = 0

    def __getattr__(self, name: str) -> Any:
        if name in ("all", "one"):
            self.statements += 1
        return getattr(self._tx, name)


async def test_rows_stand_in_the_order_of_the_inbox_in_a_fixed_number_of_statements(
    world: World,
) -> None:
    kinds: list[MessageKind] = ["result", "question", "briefing", "message", "approval", "failure"]
    founded, _ = await fill_inbox(world, *kinds * 3)
    items = await world.store.read(inbox.page, OWNER)
    asked = InboxFilter(person_id=OWNER)

    def read(tx: Tx, limit: int, **more: Any) -> tuple[inbox.Rows, int]:
        counted = _Counted(tx)
        return inbox.rows(cast(Tx, counted), asked, limit=limit, **more), counted.statements

    rows, statements = await world.store.read(read, 50)
    found = [(row.message.id, row.state, row.needs_answer) for row in rows.items]
    assert found == [(one.message.id, one.state, one.needs_answer) for one in items.items]
    assert {row.around.team_name for row in rows.items} == {founded.team.name}
    assert {row.around.sender_name for row in rows.items} == {founded.coordinator.name}
    first, few = await world.store.read(read, 2)
    assert [row.message.id for row in first.items] == [one[0] for one in found[:2]]
    rest, _ = await world.store.read(read, 50, after=first.cursor)
    assert [row.message.id for row in rest.items] == [one[0] for one in found[2:]]
    # A page of two stops at the questions.
    assert statements <= few + 2
    waiting, _ = await world.store.read(read, 50, only_open=True)
    assert [row.message.id for row in waiting.items] == [id for id, _, needs in found if needs]


async def test_some_items_are_read_by_themselves_in_any_box_with_the_counts_of_all(
    world: World,
) -> None:
    _, said = await fill_inbox(world, "report", "question", "message", "result")
    report, question, message, result = (one.id for one in said)
    await world.store.write(filing.file, OWNER, [report], "archive")
    wanted = [result, message, report, "msg_none"]
    rows = await world.store.read(inbox.rows_of, OWNER, wanted)
    assert [(row.message.id, row.state) for row in rows.items] == [
        (report, "read"),
        (result, "unread"),
    ]
    assert rows.items[0].message.archived_at is not None
    assert await world.store.read(inbox.counts, OWNER) == (2, 1, result)
    await world.store.write(answers.answer_question, question, "Yes.", person_id=OWNER)
    assert await world.store.read(inbox.counts, OWNER) == (1, 0, result)
    newer = InboxFilter(person_id=OWNER, newer_than=question)
    found = await world.store.read(inbox.rows, newer)
    assert [row.message.id for row in found.items] == [result]
