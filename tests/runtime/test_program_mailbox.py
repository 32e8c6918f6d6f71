"""Messages to and from a program: each once, to whom it was meant for, whatever happens."""

from pathlib import Path

import pytest

from agiraph.domain.persons import OWNER
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.runtime import program_mailbox
from agiraph.runtime.program_mailbox import addressed
from agiraph.services.members import roster
from agiraph.store.tx import Tx
from agiraph.testing import World, call, says
from tests.runtime.programs import Gate, done, events_of, folder_of, given, said_by
from tests.runtime.waiting import until

HANDS_IN = "echo 'It is done.' > _result.md"


def heard(text: str) -> str:
    """A program that waits until its inbox says this."""
    return f"until grep -q '{text}' _inbox.md; do sleep 0.01; done"


def says_now(gate: Gate) -> str:
    """Let the test say how the program goes on: a line of shell."""
    return f'eval "$(cat {gate})"'


async def said_to_human(world: World, node: WorkNode, number: int) -> list[str]:
    """What the program says to the person, as soon as it has said so much."""

    async def is_said() -> bool:
        return len(await said_by(world, node, to=OWNER)) >= number

    await until(world, is_said)
    return await said_by(world, node, to=OWNER)


# ---- in -------------------------------------------------------------------------------------


async def test_what_is_said_to_it_while_it_runs_stands_in_its_inbox_once(world: World) -> None:
    node = await given(world, f"{heard('second')}; cp _inbox.md heard.txt; {HANDS_IN}")
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


async def test_what_is_said_to_it_when_it_is_done_is_its_next_task(world: World) -> None:
    first = await done(world, HANDS_IN)
    assert first.assignee_id is not None
    await world.say(first.assignee_id, "One more thing.", team_id=first.team_id)
    await world.settle()

    nodes = await world.board(first.team_id)
    assert [node.status for node in nodes] == [NodeStatus.COMPLETED] * 2
    assert "One more thing." in (folder_of(world, nodes[1]) / "_task.md").read_text()


# ---- out ------------------------------------------------------------------------------------


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
def test_an_outbox_says_who_is_spoken_to(outbox: bytes, said: list[tuple[str, str]]) -> None:
    assert addressed(outbox) == said


def test_who_is_meant_does_not_depend_on_when_it_was_looked_at() -> None:
    outbox = b"For you.\n@human: One,\ntwo,\nthree.\n@ada: Four.\nFive.\n"
    for start in (place + 1 for place, byte in enumerate(outbox) if byte == ord("\n")):
        before, after = addressed(outbox[:start]), addressed(outbox, start)
        whole = [(to, line) for to, text in addressed(outbox) for line in text.splitlines()]
        assert [(to, line) for to, text in before + after for line in text.splitlines()] == whole


async def test_what_it_says_goes_to_whom_it_names(world: World) -> None:
    ada = world.script("ada", says(call("publish", summary="Noted.")))
    words = "Half done.\n@human: Which one?\n@coordinator: No hurry.\n@Zoe: Hi.\n@tool: Me.\n"
    node = await done(
        world, f"printf '{words}@everyone: Lunch!' > _outbox.md; exit 1", creator="coordinator"
    )

    [coordinator] = {agent["agent_id"] for agent in await hired(world, node)} - {node.assignee_id}
    assert await said_by(world, node, to=OWNER) == [
        "Which one?",
        "(to Zoe, whom nobody knows) Hi.",
    ]
    assert await said_by(world, node, to=coordinator) == ["Half done.", "No hurry.", "Lunch!"]
    assert "Half done." in str(ada.requests[0].turns)
    assert node.status is NodeStatus.FAILED


async def hired(world: World, node: WorkNode) -> list[dict[str, str]]:
    return [e.data for e in await world.events(node.team_id) if e.type == "agent.hired"]


async def test_every_word_is_carried_once_however_the_outbox_is_written(
    world: World, tmp_path: Path
) -> None:
    gate = Gate.at(tmp_path / "gate")
    node = await given(world, f"while {says_now(gate)}; do :; done; {HANDS_IN}")

    await gate.say("echo '@human: one' >> _outbox.md")
    assert await said_to_human(world, node, 1) == ["one"]
    await gate.say("printf 'two\\n@human: thr' >> _outbox.md")
    assert await said_to_human(world, node, 2) == ["one", "two"]
    await gate.say("printf 'ee\\n' >> _outbox.md")
    assert await said_to_human(world, node, 3) == ["one", "two", "three"]
    await gate.say("echo '@human: anew' > _outbox.md")
    assert await said_to_human(world, node, 4) == ["one", "two", "three", "anew"]
    await gate.say("printf '@human: anew\\n@human: last' > _outbox.md; false")
    await world.settle()

    said = ["one", "two", "three", "anew", "last"]
    assert await said_by(world, node, to=OWNER) == said
    assert (await world.node(node.id)).status is NodeStatus.COMPLETED


async def test_five_megabytes_of_outbox_say_something_and_no_more(world: World) -> None:
    node = await done(world, f"yes '@human: x' | head -c 5000000 > _outbox.md; {HANDS_IN}")

    said = await said_by(world, node, to=OWNER)
    pieces = program_mailbox.OUTBOX_BYTES // program_mailbox.PIECE_BYTES + 1
    assert node.status is NodeStatus.COMPLETED
    assert program_mailbox.MAX_MESSAGES < len(said) <= program_mailbox.MAX_MESSAGES * pieces
    assert said[program_mailbox.MAX_MESSAGES - 1].endswith("more messages stand in its thread.)")


async def test_one_long_word_is_said_in_pieces(world: World) -> None:
    node = await done(world, f"head -c 150000 /dev/zero | tr '\\0' x > _outbox.md; {HANDS_IN}")

    said = await said_by(world, node, to=OWNER)
    assert [len(text) for text in said] == [
        program_mailbox.PIECE_BYTES,
        program_mailbox.PIECE_BYTES,
        150_000 - 2 * program_mailbox.PIECE_BYTES,
    ]
    assert node.status is NodeStatus.COMPLETED


async def test_what_was_carried_is_beside_the_result_and_not_in_it(world: World) -> None:
    node = await done(world, f"echo '@human: one' >> _outbox.md; {HANDS_IN}")

    assert world.published(node) == {"_result.md": "It is done.\n"}
    assert (folder_of(world, node) / "_outbox.md").read_text() == "@human: one\n"
    carried = [t.text for t in await world.turns(node.id) if (t.ref or "").startswith("outbox:")]
    assert carried == ["@human: one\n"]
    assert await events_of(world, node, "message.sent") != []


async def test_two_programs_do_not_talk_for_ever(world: World) -> None:
    """Each answers whatever it hears; the runtime ends it."""
    answers = f"echo '@other: And you?' > _outbox.md; {HANDS_IN}"
    first = await given(world, answers.replace("other", "echo"))
    await world.store.write(_second, first, answers.replace("other", "tool"))
    await world.settle()

    nodes = await world.board(first.team_id)
    assert {node.status for node in nodes} == {NodeStatus.COMPLETED}
    assert len(nodes) < 20


def _second(tx: Tx, first: WorkNode, command: str) -> None:
    roster.hire(
        tx, first.team_id, name="echo", role="worker", model="cli", kind="cli", command=command
    )
