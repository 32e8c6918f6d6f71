"""A program as a teammate: what counts as its result, what it sees, and what it cannot break."""

import os
from pathlib import Path

import pytest

from agiraph import config, redaction
from agiraph.core.domain.agents import Rule
from agiraph.core.domain.messages import Decision
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.core.home import node_folder
from agiraph.core.services.lifecycle import continuations, timers
from agiraph.features.programs import command_line
from agiraph.features.programs.command_line import RESULT_CHARACTERS, Command
from agiraph.testing import World
from tests.doubts import doubts_of
from tests.runtime.programs import (
    NamedPipe,
    context_of,
    events_of,
    folder_of,
    messages_from,
    run_program,
    start_program,
)
from tests.runtime.waiting import until

WRITES_RESULT = "echo 'It is done.' > _result.md"
CANARY = "sk-canary-0123456789"


def ending(node: WorkNode) -> tuple[NodeStatus, StopReason | None, str | None, str | None]:
    return node.status, node.stop_reason, node.result, doubts_of(node)


COMPLETED = (NodeStatus.COMPLETED, StopReason.PUBLISHED, "It is done.", None)


# ---- its result -----------------------------------------------------------------------------


async def test_a_program_reads_its_task_and_submits_a_result(world: World) -> None:
    node = await run_program(world, f"grep -c 'Do it.' _task.md > seen.txt; {WRITES_RESULT}")

    assert ending(node) == COMPLETED
    assert world.published(node) == {"_result.md": "It is done.\n", "seen.txt": "1\n"}
    beside = {path.name for path in folder_of(world, node).iterdir() if path.is_file()}
    assert beside >= {"_task.md", "_context.json", "_inbox.md", "_outbox.md"}
    [result] = await world.inbox()
    assert (result.kind, result.text, result.node_id) == ("result", "It is done.", node.id)


async def test_the_context_file_describes_team_node_and_acceptance(world: World) -> None:
    lines = ("`a.txt` is there",)
    given = {"acceptance": lines, "line_kinds": {lines[0]: "file"}, "refs": {"x": "nodes/y"}}
    node = await run_program(world, f"touch a.txt; {WRITES_RESULT}", **given)

    assert ending(node) == COMPLETED
    assert context_of(world, node) == {
        "team": {"id": node.team_id, "goal": "Have it done"},
        "agent": "tool",
        "node": node.id,
        "attempt": 1,
        "acceptance": list(lines),
        "refs": {"x": str(world.path / "teams" / node.team_id / "nodes" / "y")},
        "earlier": [],
    }


async def test_exit_code_zero_without_a_result_file_is_a_failure(world: World) -> None:
    node = await run_program(world, "seq 1 1000; echo 'All is well.'")

    [told] = await world.inbox()
    assert ending(node) == (NodeStatus.FAILED, StopReason.NO_RESULT, None, None)
    assert told.text.startswith("The command ended without writing _result.md [exited, exit code 0")
    assert told.text.endswith("999\n1000\nAll is well.")
    assert "\n700\n" not in told.text


async def test_a_result_with_a_nonzero_exit_code_is_accepted_with_doubts(world: World) -> None:
    node = await run_program(world, f"{WRITES_RESULT}; exit 3")

    doubts = "its command ended with exit code 3"
    assert ending(node) == (NodeStatus.COMPLETED, StopReason.PUBLISHED, "It is done.", doubts)


async def test_missing_files_of_the_acceptance_lines_are_recorded_as_doubts(world: World) -> None:
    node = await run_program(world, WRITES_RESULT, acceptance=("`a.txt` holds it", "it is quick"))

    assert doubts_of(node) == (
        "no file 'a.txt' is delivered, but '`a.txt` holds it' asks for it; 'it is quick' was not "
        "checked"
    )


async def test_files_that_cannot_be_published_are_recorded_as_doubts(
    home: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_folder, "MOST_FILES", 5)
    node = await run_program(home, f"touch 1 2 3 4 5; {WRITES_RESULT}")

    assert (node.status, node.result, node.manifest) == (NodeStatus.COMPLETED, "It is done.", {})
    assert (doubts_of(node) or "").startswith(
        "its files could not be published: There are more than 5"
    )


async def test_a_command_that_cannot_be_run_fails_with_its_reason(world: World) -> None:
    node = await run_program(world, "./no-such-program --now")

    [told] = await world.inbox()
    assert ending(node) == (NodeStatus.FAILED, StopReason.NO_RESULT, None, None)
    assert "exit code 127" in told.text
    assert "no-such-program" in told.text


async def test_a_failed_program_can_be_retried(world: World) -> None:
    """It finds the files of its first run; the first failure no longer counts."""
    command = f"echo try >> tries.txt; [ $(wc -l < tries.txt) = 2 ] && {WRITES_RESULT}"
    failed = await run_program(world, command)
    await world.store.write(continuations.retry, failed.id)
    await world.settle()

    node = await world.node(failed.id)
    assert (failed.status, ending(node)) == (NodeStatus.FAILED, COMPLETED)
    assert world.published(node)["tries.txt"] == "try\ntry\n"
    assert context_of(world, node)["attempt"] == 2


# ---- while it runs --------------------------------------------------------------------------


async def test_a_programs_output_is_emitted_as_events_while_it_runs(
    world: World, tmp_path: Path
) -> None:
    pipe = NamedPipe.create(tmp_path / "pipe")
    node = await start_program(world, f"echo first; cat {pipe}; echo second >&2; {WRITES_RESULT}")

    async def is_told() -> bool:
        told = await events_of(world, node, "node.output")
        return [e["text"] for e in told] == ["first\n"]

    await until(world, is_told)
    await pipe.write("go on")
    await world.settle()

    told = await events_of(world, node, "node.output")
    assert "".join(e["text"] for e in told) == "first\ngo on\nsecond\n"
    assert sum(e["bytes"] for e in told) == len("first\ngo on\nsecond\n")
    [run] = await events_of(world, node, "tool.result")
    assert run["text"] == "[exited, exit code 0, 0 s]\nfirst\ngo on\nsecond"


async def test_a_program_that_keeps_running_after_its_result_is_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "LINGER_S", 0.5)
    node = await run_program(world, f"{WRITES_RESULT}; exec sleep 1000")

    assert ending(node) == COMPLETED


async def test_an_empty_result_file_does_not_end_the_program(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "LINGER_S", 0.25)
    pipe = NamedPipe.create(tmp_path / "pipe")
    node = await start_program(
        world, f"touch _result.md; cat {pipe}; cat {pipe}; cat {pipe}; {WRITES_RESULT}"
    )

    async def is_told(word: str) -> bool:
        return word in str(await events_of(world, node, "node.output"))

    for word in ("one", "two", "three"):  # the result file is checked after each
        await pipe.write(word)
        await until(world, lambda word=word: is_told(word))
    await world.settle()
    assert ending(await world.node(node.id)) == COMPLETED


async def test_a_silent_program_is_reported_as_stalled_until_it_prints_again(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timers, "STALLED_AFTER_SECONDS", 0.5)
    pipe = NamedPipe.create(tmp_path / "pipe")
    node = await start_program(world, f"cat {pipe}; cat {pipe} > /dev/null; {WRITES_RESULT}")

    async def is_stalled() -> bool:
        return (await world.node(node.id)).stalled_at is not None

    async def goes_on() -> bool:
        return not await is_stalled()

    await until(world, is_stalled)
    [notice] = await events_of(world, node, "message.sent")
    assert (notice["recipient"], notice["kind"]) == (OWNER, "report")
    assert notice["text"].startswith(f"tool works on Do it ({node.id}), but has made no progress")
    await pipe.write("something")
    await until(world, goes_on)
    await pipe.write("the end")
    await world.settle()
    assert ending(await world.node(node.id)) == COMPLETED


# ---- what it sees of the environment --------------------------------------------------------


async def test_a_program_sees_no_api_keys_except_those_named_in_its_settings(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("GIVEN_TOKEN", "for-the-program")
    written = f"""
    [commands.agent]
    command = "env > env.txt; {WRITES_RESULT}"
    environment = ["GIVEN_TOKEN", "NOT_SET"]
    """
    (tmp_path / config.FILE).write_text(written)
    named = config.load({**os.environ, "AGIRAPH_HOME": str(tmp_path)}).commands
    async with World(
        tmp_path / "home", database_url=database_url, commands=named, easy_endings=True
    ) as world:
        by_name = await run_program(world, "agent")
        by_hand = await run_program(world, f"env > env.txt; {WRITES_RESULT}")
        seen = [dict(line.split("=", 1) for line in world.published(node)["env.txt"].splitlines())
                for node in (by_name, by_hand)]  # fmt: skip

    assert [env.get("GIVEN_TOKEN") for env in seen] == ["for-the-program", None]
    assert seen[0]["HOME"] == str(folder_of(world, by_name))
    assert not {"OPENAI_API_KEY", "NOT_SET", "AGIRAPH_HOME"} & (seen[0].keys() | seen[1].keys())
    assert CANARY not in str(seen)


@pytest.mark.usefixtures("no_secrets")
async def test_a_key_given_to_a_program_is_redacted_in_everything_stored(
    tmp_path: Path, database_url: str
) -> None:
    redaction.keep({"AGENT_TOKEN": CANARY})
    says_it = 'echo $T; echo "@human: $T" >> _outbox.md; echo "It is $T." > _result.md'
    agent = Command(command=says_it, environment={"T": CANARY})
    async with World(
        tmp_path / "h", database_url=database_url, commands={"a": agent}, easy_endings=True
    ) as world:
        node = await run_program(world, "a")
        rows = str([node, await world.turns(node.id), await world.events(node.team_id),
                    await world.inbox()])  # fmt: skip
        said = await messages_from(world, node, to=OWNER)

    assert (node.result, said) == ("It is [hidden].", ["[hidden]"])
    assert CANARY not in rows


# ---- permissions ---------------------------------------------------------------------------


async def test_a_command_chosen_by_a_model_obeys_the_rules_for_bash(world: World) -> None:
    rules = (
        Rule(tool="bash", action="allow", pattern="./agent*"),
        Rule(tool="bash", action="deny"),
    )
    denied = await run_program(world, f"touch it; {WRITES_RESULT}", rules=rules)
    chained = await run_program(world, f"./agent; {WRITES_RESULT}", rules=rules)

    [told, _] = await world.inbox()
    for node in (denied, chained):
        assert ending(node) == (NodeStatus.FAILED, StopReason.NO_RESULT, None, None)
        assert list((folder_of(world, node) / "scratch").iterdir()) == []
    assert told.text.startswith("Not allowed: this team's rules deny bash on '*'.")


@pytest.mark.parametrize(
    ("decision", "status"), [("approve", NodeStatus.COMPLETED), ("deny", NodeStatus.FAILED)]
)
async def test_a_rule_can_require_approval_before_a_command_runs(
    world: World, decision: Decision, status: NodeStatus
) -> None:
    node = await run_program(world, WRITES_RESULT, rules=(Rule(tool="bash", action="ask"),))
    [question] = await world.questions(node.team_id)
    assert (node.status, list((folder_of(world, node) / "scratch").iterdir())) == (
        NodeStatus.WAITING,
        [],
    )
    assert question.call is not None
    assert (question.call.name, question.call.arguments) == ("bash", {"command": WRITES_RESULT})
    await world.answer(question, decision=decision)
    await world.settle()

    assert (await world.node(node.id)).status is status


async def test_a_command_named_in_the_settings_needs_no_approval(
    tmp_path: Path, database_url: str
) -> None:
    agent = {"agent": Command(command=WRITES_RESULT)}
    async with World(
        tmp_path / "home", database_url=database_url, commands=agent, easy_endings=True
    ) as world:
        node = await run_program(world, "agent", rules=(Rule(tool="bash", action="deny"),))
    assert ending(node) == COMPLETED


# ---- what it cannot break -------------------------------------------------------------------


async def test_binary_output_is_stored_with_replacement_characters(world: World) -> None:
    node = await run_program(world, rf"printf 'a\0b\377c\n'; {WRITES_RESULT}")

    [told] = await events_of(world, node, "node.output")
    assert ending(node) == COMPLETED
    assert (told["text"], told["bytes"]) == ("a�b�c\n", 6)


async def test_five_megabytes_of_output_are_shortened_in_events_and_thread(world: World) -> None:
    node = await run_program(world, f"head -c 5000000 /dev/zero | tr '\\0' x; {WRITES_RESULT}")

    told = await events_of(world, node, "node.output")
    [run] = [turn for turn in await world.turns(node.id) if turn.role == "tool"]
    assert ending(node) == COMPLETED
    assert max(len(e["text"]) for e in told) <= command_line.OUTPUT_BYTES
    assert len(run.text) < 20_000


async def test_a_binary_result_is_sanitised_and_a_long_one_shortened(world: World) -> None:
    odd = await run_program(world, r"printf 'a\0b\377c\n' > _result.md")
    long = await run_program(world, "head -c 5000000 /dev/zero | tr '\\0' x > _result.md")

    assert (odd.status, odd.result) == (NodeStatus.COMPLETED, "a�b�c")
    shown = "x" * RESULT_CHARACTERS + "\n… (this is the beginning; the whole text is in _result.md)"
    assert (long.status, long.result) == (NodeStatus.COMPLETED, shown)
    assert len(world.published(long)["_result.md"]) == 5_000_000


@pytest.mark.parametrize(
    "trick", ["ln -s {outside} _result.md", "mkfifo _result.md", "mkdir _result.md"]
)
async def test_a_result_that_is_not_a_regular_file_does_not_count(
    world: World, tmp_path: Path, trick: str
) -> None:
    outside = tmp_path / "outside"
    outside.write_text(CANARY)
    node = await run_program(world, trick.format(outside=outside))

    [told] = await world.inbox()
    assert ending(node) == (NodeStatus.FAILED, StopReason.NO_RESULT, None, None)
    assert told.text.endswith("It printed nothing.")
    assert CANARY not in str([await world.turns(node.id), await world.events(node.team_id)])


@pytest.mark.parametrize("name", ["_outbox.md", "_inbox.md", "_task.md", "_context.json"])
@pytest.mark.parametrize("trick", ["ln -s {outside} {name}", "mkfifo {name}", "mkdir {name}", ":"])
async def test_a_mailbox_file_replaced_by_a_link_pipe_or_folder_carries_nothing(
    home: World, tmp_path: Path, trick: str, name: str
) -> None:
    outside, pipe = tmp_path / "outside", NamedPipe.create(tmp_path / "pipe")
    outside.write_text(f"@human: {CANARY}\n")
    play = trick.format(outside=outside, name=name)
    node = await start_program(home, f"rm {name}; {play}; echo played; cat {pipe}; {WRITES_RESULT}")
    assert node.assignee_id is not None

    async def is_played() -> bool:
        return bool(await events_of(home, node, "node.output"))

    async def is_delivered() -> bool:
        return any(event.type == "message.seen" for event in await home.events(node.team_id))

    await until(home, is_played)
    await home.say(node.assignee_id, "Do you hear me?", team_id=node.team_id)
    await until(home, is_delivered)
    await pipe.write("go on")
    await home.settle()

    node = await home.node(node.id)
    assert ending(node) == COMPLETED
    assert await messages_from(home, node, to=OWNER) == []
    assert outside.read_text() == f"@human: {CANARY}\n"
    assert CANARY not in str([await home.turns(node.id), home.published(node)])


async def test_a_program_that_replaces_its_folder_by_a_link_publishes_nothing_from_it(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "_result.md").write_text(CANARY)
    swap = f"cd ..; mv scratch elsewhere; ln -s {tmp_path / 'outside'} scratch"
    node = await run_program(world, f"{WRITES_RESULT}; {swap}")

    assert CANARY not in str([node, await world.turns(node.id), world.published(node)])
    assert (node.status, node.manifest) == (NodeStatus.COMPLETED, {})
    assert (doubts_of(node) or "").startswith("its files could not be published: ")
