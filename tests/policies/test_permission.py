"""Rules allow, deny or ask; an approval is for one call with its exact arguments."""

import pytest

from agiraph.api.presenters import message_view
from agiraph.core.domain.agents import Rule
from agiraph.core.domain.provenance.sinks import RISK_OF_SINK, Sink
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.testing import World, call, says
from tests.tools.tool_calls import ToolAnswer, node_folder, refused, run_calls

ASK = (Rule(tool="bash", action="ask"),)


def denied(tool: str, pattern: str) -> ToolAnswer:
    return refused(
        f"Not allowed: this team's rules deny {tool} on {pattern!r}. "
        "Do it another way, or ask the human."
    )


async def found_asking_team(world: World, command: str, *more: str) -> NewTeam:
    """Found a team that runs these commands and needs approval for each."""
    world.script(
        "ada",
        says(*(call("bash", command=c) for c in (command, *more))),
        says(call("finish", summary="done")),
    )
    founded = await world.found("Run it", permissions=ASK)
    await world.settle()
    return founded


async def tool_answers(world: World, founded: NewTeam) -> list[ToolAnswer]:
    assert founded.node is not None
    answers = [t for t in await world.turns(founded.node.id) if t.role == "tool"]
    return [ToolAnswer(t.text, t.failed) for t in answers]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_first_rule_that_matches_decides(world: World) -> None:
    rules = (
        Rule(tool="bash", action="allow", pattern="echo *"),
        Rule(tool="bash", action="deny"),
        Rule(tool="*_file", action="deny", pattern="*.env"),
        Rule(tool="edit_file", action="deny"),
    )
    _, answers = await run_calls(
        world,
        call("bash", command="echo hello"),
        call("bash", command="ls"),
        call("write_file", path="conf/.env", content="x"),
        call("write_file", path="a.md", content="x"),
        call("edit_file", path="a.md", old="x", new="y"),
        call("read_file", path="a.md"),
        permissions=rules,
    )

    assert answers == [
        ToolAnswer("[exit code 0]\nhello"),
        denied("bash", "*"),
        denied("write_file", "*.env"),
        ToolAnswer("Wrote a.md (1 bytes)."),
        denied("edit_file", "*"),
        ToolAnswer("x"),
    ]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_rule_matches_the_significant_argument_and_not_the_first_one(
    world: World,
) -> None:
    rules = (
        Rule(tool="bash", action="deny", pattern="rm *"),
        Rule(tool="write_file", action="allow", pattern="notes/*"),
        Rule(tool="write_file", action="deny"),
    )
    _, answers = await run_calls(
        world,
        call("bash", timeout=5, command="rm -rf notes"),
        call("bash", command=" rm -rf notes"),
        call("write_file", content="notes/a.md", path="other/a.md"),
        permissions=rules,
    )

    assert answers == [denied("bash", "rm *"), denied("bash", "rm *"), denied("write_file", "*")]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_spelling_of_a_path_gets_around_a_rule(world: World) -> None:
    rules = (
        Rule(tool="write_file", action="deny", pattern="secret/*"),
        Rule(tool="write_file", action="deny", pattern="memory/*"),
    )
    founded = await world.found("Write", permissions=rules, start=False)
    ways = ["secret/a", "./secret/a", "secret//a", "scratch/secret/a", "memory/./a"]
    world.script(
        "ada",
        lambda request: says(
            *(call("write_file", path=way, content="x") for way in ways),
            call(
                "write_file",
                path=f"nodes/{request.transcript.turns[1].node_id}/scratch/secret/a",
                content="x",
            ),
        ),
        says(call("finish", summary="done")),
    )
    await world.say(founded.coordinator.id, "Go.", team_id=founded.team.id)
    await world.settle()

    [node] = await world.board(founded.team.id)
    answers = [t.text for t in await world.turns(node.id) if t.role == "tool"][:6]
    assert answers == [
        *[denied("write_file", "secret/*").text] * 4,
        denied("write_file", "memory/*").text,
        denied("write_file", "secret/*").text,
    ]
    assert list((node_folder(world, node) / "scratch").iterdir()) == []


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_command_chained_to_an_allowed_one_is_denied(world: World) -> None:
    rules = (
        Rule(tool="bash", action="allow", pattern="echo *"),
        Rule(tool="bash", action="deny"),
    )
    chained = ["echo a; id", "echo a && id", "echo a | sh", "echo `id`", "echo $(id)", "echo a\nid"]
    chained += ["echo a > ../_spec.md", "echo a & id"]
    _, answers = await run_calls(
        world, *(call("bash", command=command) for command in chained), permissions=rules
    )

    assert answers == [denied("bash", "*")] * len(chained)


async def test_a_person_is_shown_the_whole_call_and_nothing_runs_before_they_decide(
    world: World,
) -> None:
    founded = await found_asking_team(world, "echo yes > a")

    [goal] = await world.board(founded.team.id)
    [question] = await world.questions(founded.team.id)
    assert (goal.status, goal.waiting_reason) == (
        NodeStatus.WAITING,
        "asked the human to approve bash",
    )
    assert (question.kind, question.text, question.options) == (
        "approval",
        "May I call bash?",
        ("approve", "deny"),
    )
    assert question.call is not None
    assert (question.call.name, question.call.arguments) == (
        "bash",
        {"command": "echo yes > a", "timeout": 120, "network": None},
    )
    assert list((node_folder(world, goal) / "scratch").iterdir()) == []


async def test_a_request_carries_the_agents_own_words_and_what_can_go_wrong(world: World) -> None:
    clean, note = call("bash", command="rm -r build"), call("write_file", path="a.md", content="x")
    world.script("ada", says("The build folder is **stale**, so I clean it.", clean, note))
    await world.found("Build it", permissions=(*ASK, Rule(tool="write_file", action="ask")))
    await world.settle()

    requests = await world.inbox()
    views = [await world.store.read(message_view, each) for each in requests]
    words = "The build folder is **stale**, so I clean it."
    assert sorted((view.reason, view.risks) for view in views) == [
        (words, ["changes_files"]),
        (words, ["runs_command", "cannot_be_undone"]),
    ]


def test_every_way_out_has_a_risk() -> None:
    assert set(RISK_OF_SINK) == set(Sink)


async def test_an_approved_call_runs_once_even_after_a_restart(world: World) -> None:
    founded = await found_asking_team(world, "echo yes >> a; cat a")
    [question] = await world.questions(founded.team.id)

    await world.restart()
    await world.answer(question, decision="approve")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, world.published(goal)) == (NodeStatus.COMPLETED, {"a": "yes\n"})
    assert (await tool_answers(world, founded))[0] == ToolAnswer("[exit code 0]\nyes")


async def test_a_denied_call_does_not_run_and_the_note_reaches_the_model(world: World) -> None:
    founded = await found_asking_team(world, "echo no > a")
    [question] = await world.questions(founded.team.id)

    await world.restart()
    await world.answer(question, "Use write_file instead.", decision="deny")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert (goal.status, world.published(goal)) == (NodeStatus.COMPLETED, {})
    assert (await tool_answers(world, founded))[0] == refused(
        "The human refused this call. They say: Use write_file instead."
    )


async def test_an_approval_applies_only_to_its_own_call(world: World) -> None:
    founded = await found_asking_team(world, "echo one >> a", "echo two >> a")
    one, two = await world.questions(founded.team.id)
    await world.answer(two, decision="approve")
    await world.settle()
    [goal] = await world.board(founded.team.id)
    assert goal.status is NodeStatus.WAITING

    await world.answer(one, decision="deny")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    assert [q.call and q.call.arguments["command"] for q in (one, two)] == [
        "echo one >> a",
        "echo two >> a",
    ]
    assert world.published(goal) == {"a": "two\n"}


async def test_a_repeated_call_needs_another_approval(world: World) -> None:
    world.script(
        "ada",
        says(call("bash", command="echo once >> a")),
        says(call("bash", command="echo once >> a")),
        says(call("finish", summary="done")),
    )
    founded = await world.found("Run it twice", permissions=ASK)
    await world.settle()
    [first] = await world.questions(founded.team.id)
    await world.answer(first, decision="approve")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    [second] = await world.questions(founded.team.id)
    assert (goal.status, second.id != first.id) == (NodeStatus.WAITING, True)
    await world.answer(second, decision="deny")
    await world.settle()
    assert world.published(goal) == {"a": "once\n"}


async def test_an_approval_carries_every_character_of_a_long_and_hostile_argument(
    world: World,
) -> None:
    content = "x" * 200_000 + "<!-- \0 \x1b[2K \u202e \u200b ```\r\n -->"
    world.script("ada", says(call("write_file", path="a.md", content=content)))
    founded = await world.found("W", permissions=(Rule(tool="write_file", action="ask"),))
    await world.settle()

    [question] = await world.questions(founded.team.id)
    assert question.text == "May I call write_file?"
    assert question.call is not None
    assert question.call.arguments == {"path": "a.md", "content": content}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_an_invalid_call_asks_for_no_approval(world: World) -> None:
    _, answers = await run_calls(world, call("bash", cmd="ls"), permissions=ASK)

    usage = "It takes: command, timeout (optional), network (optional)."
    fault = "'command' is missing; there is no argument 'cmd'"
    assert answers == [refused(f"bash: {fault}. {usage}")]
