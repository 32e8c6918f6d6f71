"""Messages to and from a program: each one reaches its recipient once."""

from pathlib import Path

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.members import roster
from agiraph.core.store.tx import Tx
from agiraph.features.programs import command_line
from agiraph.features.programs import mailbox as program_mailbox
from agiraph.features.programs.mailbox import addressed
from agiraph.testing import World, call, says
from tests.runtime.programs import (
    NamedPipe,
    events_of,
    folder_of,
    messages_from,
    run_program,
    start_program,
)
from tests.runtime.waiting import until

WRITES_RESULT = "echo 'It is done.' > _result.md"


def wait_for_message(text: str) -> str:
    """Return a shell command that waits until the inbox contains this text."""
    return f"until grep -q '{text}' _inbox.md; do sleep 0.01; done"


def run_line_from(pipe: NamedPipe) -> str:
    """Return a shell command that runs the next line that the test writes to the pipe."""
    return f'eval "$(cat {pipe})"'


async def messages_to_person(world: World, node: WorkNode, number: int) -> list[str]:
    """Wait until the program has sent this many messages to the person; return them."""

    async def are_sent() -> bool:
        return len(await messages_from(world, node, to=OWNER)) >= number

    await until(world, are_sent)
    return await messages_from(world, node, to=OWNER)


# ---- inbox ----------------------------------------------------------------------------------


async def test_messages_to_a_running_program_are_in_its_inbox_once(world: World) -> None:
    node = await start_program(
        world, f"{wait_for_message('second')}; cp _inbox.md heard.txt; {WRITES_RESULT}"
    )
    assert node.assignee_id is not None
    await world.say(node.assignee_id, "The first word.", team_id=node.team_id)
    await world.say(node.assignee_id, "The second word.", team_id=node.team_id)
    await world.settle()

    node = await world.node(node.id)
    assert node.status is NodeStatus.COMPLETED
    assert world.published(node)["heard.txt"] == (
        "[Message from human] The first word.\n\n[Message from human] The second word.\n\n"
    )
    assert len(await world.board(node.team_id)) == 1


async def test_a_message_to_a_finished_program_becomes_its_next_task(world: World) -> None:
    first = await run_program(world, WRITES_RESULT)
    assert first.assignee_id is not None
    await world.say(first.assignee_id, "One more thing.", team_id=first.team_id)
    await world.settle()

    nodes = await world.board(first.team_id)
    assert [node.status for node in nodes] == [NodeStatus.COMPLETED] * 2
    assert "One more thing." in (folder_of(world, nodes[1]) / "_task.md").read_text()


async def test_a_message_that_a_program_did_not_live_to_read_becomes_its_next_task(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "POLL_S", 60.0)  # no poll between the message and the end
    pipe = NamedPipe.create(tmp_path / "pipe")
    waits = f"grep -q 'A late word' _task.md || {{ echo > {pipe}; {run_line_from(pipe)}; }}"
    first = await start_program(world, f"{waits}; cp _inbox.md heard.txt; {WRITES_RESULT}")
    assert first.assignee_id is not None
    await pipe.read()
    await world.say(first.assignee_id, "A late word.", team_id=first.team_id)
    await pipe.write(":")
    await world.settle()

    nodes = await world.board(first.team_id)
    tasks = [(folder_of(world, node) / "_task.md").read_text() for node in nodes]
    assert "A late word." not in world.published(nodes[0])["heard.txt"]
    assert ["A late word." in task for task in tasks] == [False, True]


# ---- outbox ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outbox", "said"),
    [
        (b"", []),
        (b"\n\n  \n", []),
        (b"Half done.\n", [("", "Half done.")]),
        (b"@human: Hello.\n", [("human", "Hello.")]),
        (b"@human Hello.\n@Ada:Hi.", [("human", "Hello."), ("Ada", "Hi.")]),
        (b"@human: A\n\n  b\n@*: C\n", [("human", "A\n\n  b"), ("*", "C")]),
        (b"To you.\n@human: And you.\n", [("", "To you."), ("human", "And you.")]),
        (b"@human:\n@ada: \nHi.\n", [("ada", "Hi.")]),
        (b"@dataclass(frozen=True)\nme@home: no\n", [("", "@dataclass(frozen=True)\nme@home: no")]),
        (b"@human: a\r\nb\0\xff\r\n", [("human", "a\nb��")]),
    ],
)
def test_an_outbox_is_parsed_into_recipients_and_texts(
    outbox: bytes, said: list[tuple[str, str]]
) -> None:
    assert addressed(outbox) == said


def test_the_recipient_does_not_depend_on_when_the_outbox_is_read() -> None:
    outbox = b"For you.\n@human: One,\ntwo,\nthree.\n@ada: Four.\nFive.\n"
    for start in (place + 1 for place, byte in enumerate(outbox) if byte == ord("\n")):
        before, after = addressed(outbox[:start]), addressed(outbox, start)
        whole = [(to, line) for to, text in addressed(outbox) for line in text.splitlines()]
        assert [(to, line) for to, text in before + after for line in text.splitlines()] == whole


async def test_outbox_messages_go_to_the_recipients_they_name(world: World) -> None:
    ada = world.script("ada", says(call("publish", summary="Noted.")))
    words = "Half done.\n@human: Which one?\n@coordinator: No hurry.\n@Zoe: Hi.\n@tool: Me.\n"
    node = await run_program(
        world, f"printf '{words}@everyone: Lunch!' > _outbox.md; exit 1", creator="coordinator"
    )

    [coordinator] = {agent["agent_id"] for agent in await hired(world, node)} - {node.assignee_id}
    assert await messages_from(world, node, to=OWNER) == [
        "Which one?",
        "(to Zoe, whom nobody knows) Hi.",
    ]
    assert await messages_from(world, node, to=coordinator) == ["Half done.", "No hurry.", "Lunch!"]
    assert "Half done." in str(ada.requests[0].turns)
    assert node.status is NodeStatus.FAILED


async def hired(world: World, node: WorkNode) -> list[dict[str, str]]:
    return [e.data for e in await world.events(node.team_id) if e.type == "agent.hired"]


@pytest.mark.slow
async def test_each_outbox_message_is_sent_once_however_the_file_is_written(
    world: World, tmp_path: Path
) -> None:
    pipe = NamedPipe.create(tmp_path / "pipe")
    node = await start_program(world, f"while {run_line_from(pipe)}; do :; done; {WRITES_RESULT}")

    await pipe.write("echo '@human: one' >> _outbox.md")
    assert await messages_to_person(world, node, 1) == ["one"]
    await pipe.write("printf 'two\\n@human: thr' >> _outbox.md")
    assert await messages_to_person(world, node, 2) == ["one", "two"]
    await pipe.write("printf 'ee\\n' >> _outbox.md")
    assert await messages_to_person(world, node, 3) == ["one", "two", "three"]
    await pipe.write("echo '@human: anew' > _outbox.md")
    assert await messages_to_person(world, node, 4) == ["one", "two", "three", "anew"]
    await pipe.write("printf '@human: anew\\n@human: last' > _outbox.md; false")
    await world.settle()

    said = ["one", "two", "three", "anew", "last"]
    assert await messages_from(world, node, to=OWNER) == said
    assert (await world.node(node.id)).status is NodeStatus.COMPLETED


@pytest.mark.slow
async def test_a_five_megabyte_outbox_sends_a_limited_number_of_messages(world: World) -> None:
    node = await run_program(
        world, f"yes '@human: x' | head -c 5000000 > _outbox.md; {WRITES_RESULT}"
    )

    said = await messages_from(world, node, to=OWNER)
    pieces = program_mailbox.OUTBOX_BYTES // program_mailbox.PIECE_BYTES + 1
    assert node.status is NodeStatus.COMPLETED
    assert program_mailbox.MAX_MESSAGES < len(said) <= program_mailbox.MAX_MESSAGES * pieces
    assert said[program_mailbox.MAX_MESSAGES - 1].endswith("more messages stand in its thread.)")


async def test_a_long_outbox_message_is_sent_in_pieces(world: World) -> None:
    node = await run_program(
        world, f"head -c 150000 /dev/zero | tr '\\0' x > _outbox.md; {WRITES_RESULT}"
    )

    said = await messages_from(world, node, to=OWNER)
    assert [len(text) for text in said] == [
        program_mailbox.PIECE_BYTES,
        program_mailbox.PIECE_BYTES,
        150_000 - 2 * program_mailbox.PIECE_BYTES,
    ]
    assert node.status is NodeStatus.COMPLETED


async def test_the_outbox_is_kept_beside_the_result_and_not_published(world: World) -> None:
    node = await run_program(world, f"echo '@human: one' >> _outbox.md; {WRITES_RESULT}")

    assert world.published(node) == {"_result.md": "It is done.\n"}
    assert (folder_of(world, node) / "_outbox.md").read_text() == "@human: one\n"
    carried = [t.text for t in await world.turns(node.id) if (t.ref or "").startswith("outbox:")]
    assert carried == ["@human: one\n"]
    assert await events_of(world, node, "message.sent") != []


@pytest.mark.slow
async def test_two_programs_do_not_message_each_other_for_ever(world: World) -> None:
    """Each answers every message, and the person allows every start: the hop limit ends it."""
    answers = f"echo '@other: And you?' > _outbox.md; {WRITES_RESULT}"
    first = await start_program(world, answers.replace("other", "echo"))
    await world.store.write(_hire_second, first, answers.replace("other", "tool"))
    await world.settle()
    asked = 0
    while questions := await world.questions(first.team_id):
        asked += len(questions)
        for question in questions:
            await world.answer(question, decision="approve")
        await world.settle()

    nodes = await world.board(first.team_id)
    assert {node.status for node in nodes} == {NodeStatus.COMPLETED}
    assert 0 < asked < len(nodes) < 20


def _hire_second(tx: Tx, first: WorkNode, command: str) -> None:
    roster.hire(
        tx, first.team_id, name="echo", role="worker", model="cli", kind="cli", command=command
    )
