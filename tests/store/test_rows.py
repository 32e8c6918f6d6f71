"""Every row type is read back from its table unchanged, on both databases."""

import types
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agiraph.api.feature_views.known import Insight, Memory
from agiraph.core.domain.chat import (
    THINKING,
    OutboxMark,
    ProviderData,
    Reserved,
    TextMark,
    Thread,
    ToolCall,
    Turn,
    VendorParts,
)
from agiraph.core.domain.errors import NotFound, Refused, StoreDamaged
from agiraph.core.domain.ids import MessageId, ThreadId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.provenance.labels import UNKNOWN, Label, of_program
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.work import Budget, NodeStatus, Usage
from agiraph.core.domain.work_kinds import LINK_READER, WorkKind
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import threads
from agiraph.core.store.database import Store
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import Table, from_micros, to_micros
from agiraph.core.store.spend import SPEND
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.threads import THREADS
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx
from agiraph.core.store.waits import WAITS

TABLES: list[Table[Any]] = [
    *(TEAMS, AGENTS, NODES, THREADS, MESSAGES, WAITS, SPEND, TRIGGERS),
    *(Table("stages", Stage), Table("memories", Memory), Table("insights", Insight)),
]
AT = datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)
WORDS = 'Zoë said: "50 % of 漢字" — it\'s \\ 🙂 \u202e\n\t{for_update} :name %s'


@pytest.fixture
async def thread(store: Store, founded: NewTeam) -> Thread:
    opened = Thread(
        id=ThreadId("t_1"),
        team_id=founded.team.id,
        agent_id=founded.coordinator.id,
        created_at=AT,
    )
    return await store.write(THREADS.insert, opened)


def sample(hint: Any) -> Any:
    """Return a value of this type in which nothing is empty, None or the default."""
    if isinstance(hint, NewType):
        return "some_id"
    if get_origin(hint) in (Union, types.UnionType):
        return sample(next(a for a in get_args(hint) if a is not type(None)))
    if get_origin(hint) is Literal:
        return get_args(hint)[-1]
    if get_origin(hint) is tuple:
        return (sample(get_args(hint)[0]), sample(get_args(hint)[0]))
    if get_origin(hint) is dict:
        return {WORDS: sample(get_args(hint)[1])}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return list(hint)[-1]
    if hint is WorkKind:
        return LINK_READER
    if hint is Label:
        return Label((f"file:{WORDS}", "search"), 3)
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return full_row(hint)
    known = {str: WORDS, int: 2**31 - 1, float: 0.1, bool: True, datetime: AT}
    return known.get(hint, [1, 2.5, None, {"nul": "\0"}])


def full_row(row_type: type[Any], **known: Any) -> Any:
    hints = get_type_hints(row_type)
    return row_type(**{f.name: known.get(f.name, sample(hints[f.name])) for f in fields(row_type)})


def references(founded: NewTeam, thread: Thread, row_type: type[Any]) -> dict[str, Any]:
    """Return values for the foreign keys of a row type that refer to existing rows."""
    assert founded.node is not None
    there: dict[str, Any] = {
        "team_id": founded.team.id,
        "agent_id": founded.coordinator.id,
        "assignee_id": founded.coordinator.id,
        "node_id": founded.node.id,
        "parent_id": thread.id if row_type is Thread else founded.node.id,
        "thread_id": thread.id,
        "stage_id": None,
    }
    return {name: value for name, value in there.items() if name in get_type_hints(row_type)}


async def test_a_row_of_any_type_with_every_field_set_is_read_back_unchanged(
    store: Store, founded: NewTeam, thread: Thread
) -> None:
    for table in TABLES:
        row = full_row(table.value_type, **references(founded, thread, table.value_type))
        await store.write(table.insert, row)
        assert await store.read(table.get, str(getattr(row, table.key))) == row


async def test_a_row_of_any_type_with_only_required_fields_is_read_back_unchanged(
    store: Store, founded: NewTeam, thread: Thread
) -> None:
    for table in TABLES:
        row = full_row(table.value_type, **references(founded, thread, table.value_type))
        needed = [f.name for f in fields(row) if f.default is f.default_factory is MISSING]
        bare = table.value_type(**{name: getattr(row, name) for name in needed})
        await store.write(table.insert, bare)
        assert await store.read(table.get, str(getattr(bare, table.key))) == bare


async def test_a_turn_with_every_field_set_is_read_back_unchanged(
    store: Store, thread: Thread
) -> None:
    usage = Usage(input_tokens=2**40, usd=0.1)
    turn = full_row(Turn, thread_id=thread.id, seq=1, at=store.clock.now(), usage=usage)
    bare = Turn(
        thread_id=thread.id, seq=2, node_id=None, role="user", text="", at=store.clock.now()
    )

    def append(tx: Tx) -> list[Turn]:
        page, written = threads.append_point(tx, thread.id), []
        for wanted in (turn, bare):
            given = {f.name: getattr(wanted, f.name) for f in fields(wanted)}
            for placed in ("thread_id", "seq", "at"):
                del given[placed]
            page, made = threads.append(tx, page, **given)
            written.append(made)
        return written

    assert await store.write(append) == [turn, bare]
    assert await store.read(threads.turns, thread.id) == [turn, bare]


OLD_ROWS: list[tuple[str, str, str, dict[str, Any]]] = [
    (
        "assistant",
        "",
        '{"thinking": "Hm.", "vendor": {"name": "gemini", "parts": [{"call": 0}]},'
        ' "text": {"key": "k", "kind": "calls", "missed": true}}',
        {
            "provider_data": ProviderData(
                thinking="Hm.",
                vendor=VendorParts(vendor="gemini", parts=[{"call": 0}]),
                text=TextMark(key="k", kind="calls", missed=True),
            )
        },
    ),
    ("tool", "c1", '{"label": ["unknown"], "failed": true}',
     {"label": UNKNOWN, "failed": True}),
    ("user", "summary:1", '{"cut": true}', {"is_summary": True}),
    ("user", "outbox:7", '{"end": 7, "sha256": "ab"}', {"outbox": OutboxMark(end=7, sha256="ab")}),
    ("intent", THINKING, '{"tokens": 9, "usd": 0.5}', {"reserved": Reserved(tokens=9, usd=0.5)}),
    ("intent", "c2", '{"before": "1", "end": "2"}', {"foreseen": {"before": "1", "end": "2"}}),
    ("intent", "c3", '{"command": "make", "seconds": 60.0, "label": ["program:make"]}',
     {"foreseen": {"command": "make"}, "timeout_s": 60.0, "label": of_program("make")}),
]  # fmt: skip
"""Turns of old databases, in which the column was one free-form dictionary."""


@pytest.mark.parametrize(("role", "ref", "extra", "fields_read"), OLD_ROWS)
def test_a_turn_of_an_old_database_is_read_into_typed_fields(
    role: Any, ref: str, extra: str, fields_read: dict[str, Any]
) -> None:
    row = (1, None, role, "Text", to_micros(AT), ref, None, None, extra, None, None)
    bare = Turn(thread_id=ThreadId("t"), seq=1, node_id=None, role=role, text="Text", at=AT)
    assert threads.read_turn(ThreadId("t"), row) == replace(bare, ref=ref, **fields_read)


@pytest.mark.parametrize("extra", ["[]", "7", '{"vendor": 3}', '{"text": {"no": 1}}'])
def test_invalid_details_of_a_turn_are_reported_as_damage(extra: str) -> None:
    row = (1, None, "assistant", "Text", to_micros(AT), None, None, None, extra, None, None)
    with pytest.raises(StoreDamaged):
        threads.read_turn(ThreadId("t"), row)


async def test_an_update_changes_the_fields_it_names_and_no_other(
    store: Store, founded: NewTeam, thread: Thread
) -> None:
    node = full_row(NODES.value_type, **references(founded, thread, NODES.value_type))
    changes: dict[str, Any] = {
        "status": NodeStatus.ASSIGNED,
        "budget": Budget(calls={"bash": 1}),
        "ended_at": None,
        "stop_reason": None,
        "cancel_requested": False,
    }

    def change(tx: Tx) -> tuple[int, int]:
        NODES.insert(tx, node)
        return NODES.update(tx, node.id, **changes), NODES.update(tx, "node_none", attempt=1)

    assert await store.write(change) == (1, 0)
    assert await store.read(NODES.get, node.id) == replace(node, **changes)


async def test_reading_a_missing_row_fails_with_its_id(store: Store) -> None:
    assert await store.read(NODES.find, "node_none") is None
    with pytest.raises(NotFound, match=r"There is no worknode 'node_none'\."):
        await store.read(NODES.get, "node_none")
    with pytest.raises(Refused):
        await store.read(NODES.get, "node\0")


DAYS = st.datetimes(datetime(1, 1, 2), timezones=st.just(UTC))  # noqa: DTZ001


@given(DAYS)
def test_a_time_is_stored_to_the_microsecond(moment: datetime) -> None:
    assert from_micros(to_micros(moment)) == moment
    assert from_micros(to_micros(moment) - 1) == moment - timedelta(microseconds=1)


# ---- text ------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
on_one_database = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50
)


@pytest.mark.slow
@on_one_database
@given(text=TEXT, arguments=st.dictionaries(TEXT, TEXT | st.integers(-(2**63), 2**63 - 1)))
async def test_any_text_of_a_turn_is_read_back_unchanged(
    store: Store, thread: Thread, text: str, arguments: dict[str, Any]
) -> None:
    calls = (ToolCall(id="c", name="bash", arguments=arguments),)
    written, read = await append_and_read(store, thread, text=text, calls=calls)
    assert (read, read.text, read.calls) == (written, text, calls)


@pytest.mark.slow
@on_one_database
@given(text=TEXT, options=st.lists(TEXT).map(tuple))
async def test_any_text_of_a_message_is_read_back_unchanged(
    store: Store, founded: NewTeam, text: str, options: tuple[str, ...]
) -> None:
    message = Message(
        id=MessageId("msg_1"),
        team_id=founded.team.id,
        seq=1,
        sender="human",
        recipient=founded.coordinator.id,
        text=text,
        created_at=AT,
        options=options,
    )

    def send(tx: Tx) -> None:
        tx.run("delete from messages")
        MESSAGES.insert(tx, message)

    await store.write(send)
    assert await store.read(MESSAGES.get, message.id) == message


@on_one_database
@given(text=st.text("aé\0\ud83d\udcff🙂"))
async def test_characters_that_cannot_be_stored_are_replaced_alike_on_both_databases(
    store: Store, thread: Thread, text: str
) -> None:
    """PostgreSQL refuses NUL, and half a surrogate pair is no character anywhere."""
    written, read = await append_and_read(store, thread, text=text, foreseen={"said": text})
    whole = "".join(characters(text))
    shown = whole.replace("\0", "\N{SYMBOL FOR NULL}")
    assert (written.text, read.text, read.foreseen) == (shown, shown, {"said": whole})


async def append_and_read(store: Store, thread: Thread, **given: Any) -> tuple[Turn, Turn]:
    def append(tx: Tx) -> Turn:
        page = threads.append_point(tx, thread.id)
        return threads.append(tx, page, node_id=None, role="tool", **given)[1]

    written = await store.write(append)
    [read] = await store.read(threads.turns, thread.id, after=written.seq - 1)
    return written, read


def characters(text: str) -> Iterator[str]:
    """Yield the characters of a text: a surrogate pair as one, a lone surrogate as U+FFFD."""
    rest = iter([*text, ""])
    char = next(rest)
    while char:
        after = next(rest)
        if (char, after) == ("\ud83d", "\udcff"):
            yield "\N{PRAYER BEADS}"
            after = next(rest)
        else:
            yield "\N{REPLACEMENT CHARACTER}" if "\ud800" <= char <= "\udfff" else char
        char = after


async def test_a_row_read_again_shows_the_latest_write_of_its_transaction(
    store: Store, founded: NewTeam
) -> None:
    def change_and_read(tx: Tx) -> list[str]:
        node = founded.node
        assert node is not None
        seen = [NODES.get(tx, node.id).title]
        NODES.update(tx, node.id, title="by its table")
        seen.append(NODES.get(tx, node.id).title)
        tx.run("update nodes set title = :title where id = :id", title="by hand", id=node.id)
        seen.append(NODES.get(tx, node.id, lock=True).title)
        tx.run("update teams set name = :name", name="another table")
        return [*seen, NODES.get(tx, node.id).title, TEAMS.get(tx, node.team_id).name]

    assert founded.node is not None
    seen = await store.write(change_and_read)
    names = [founded.node.title, "by its table", "by hand", "by hand", "another table"]
    assert seen == names
    assert (await store.read(NODES.get, founded.node.id)).title == "by hand"


async def test_a_rolled_back_write_is_not_read_from_the_cache(
    store: Store, founded: NewTeam
) -> None:
    node = founded.node
    assert node is not None

    def change_and_fail(tx: Tx) -> None:
        NODES.update(tx, node.id, title="never")
        assert NODES.get(tx, node.id).title == "never"
        raise Refused("No.")

    with pytest.raises(Refused):
        await store.write(change_and_fail)
    assert (await store.write(NODES.get, node.id)).title == node.title
