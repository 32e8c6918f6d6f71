"""Tools on demand: a tool out of sight is described when asked for, and called as any other."""

from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.agents import Agent, Rule
from agiraph.core.domain.chat import ToolCall, ToolSpec
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.domain.work import NodeStatus
from agiraph.core.run_context import RunContext
from agiraph.core.tools.base import tool
from agiraph.core.tools.calls.call_reading import read_calls
from agiraph.core.tools.toolsets import BUILT_IN, toolset
from agiraph.models.base import Request
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.registry import Account, Keys
from agiraph.testing import ManualClock, ModelServer, Says, World, call, says
from tests.tools.tool_calls import ToolAnswer, refused, run_calls


@tool(effect="repeatable", in_sight=ON_DEMAND)
async def weigh(ctx: RunContext, what: str, grams: int = 0) -> Answer:
    """Weigh something."""
    return Done(f"{what}: {grams} g")


def agent(role: str, *tools: str) -> Agent:
    fields: Any = {"id": "agent_1", "team_id": "team_1", "name": "ada", "model": "demo"}
    return Agent(role=role, created_at=ManualClock().now(), tools=tools, **fields)


def shown(*given: Any, **options: Any) -> list[str]:
    return [spec.name for spec in toolset(*given, **options).shown]


COORDINATOR = [
    "ask_human", "assign_task", "assign_worker", "bash", "call_tool", "check_board",
    "create_work_node", "finish", "read_file", "reconvene", "send_message", "set_acceptance",
    "spawn_worker", "start_stage", "tool_help", "web_fetch", "web_search", "write_file",
]  # fmt: skip
WORKER = [
    "ask_human", "bash", "call_tool", "checkpoint", "edit_file", "publish", "read_file", "read_ref",
    "send_message", "suggest_next", "tool_help", "web_fetch", "web_search", "write_file",
]  # fmt: skip


def test_each_role_sees_what_it_needs() -> None:
    assert shown(agent("coordinator")) == COORDINATOR
    assert shown(agent("worker")) == WORKER


def test_a_small_window_sees_the_basic_tools_in_short_form() -> None:
    lead = toolset(agent("coordinator"), is_lean=True)
    helps = toolset(agent("worker"), is_lean=True)

    assert [spec.name for spec in lead.shown] == [
        "ask_human",
        "assign_task",
        "bash",
        "finish",
        "read_file",
        "set_acceptance",
        "task_output",
        "write_file",
    ]
    assert [spec.name for spec in helps.shown] == ["bash", "publish", "read_file", "write_file"]
    assert (lead.listed, helps.listed) == ((), ())
    assert helps.shown[0].description == (
        "Run a shell command in scratch/, to see its exit code and output."
    )
    assert helps.shown[0].schema == {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    }
    assert list(lead.shown[3].schema["properties"]) == ["summary", "reached", "evidence"]
    assert lead.tools.keys() == toolset(agent("coordinator")).tools.keys() - {
        "call_tool",
        "tool_help",
    }


def test_a_researcher_with_a_small_window_sees_the_web() -> None:
    names = shown(agent("researcher", "bash", "web_search", "web_fetch"), is_lean=True)

    assert names == ["bash", "publish", "web_fetch", "web_search"]


def test_an_agent_with_a_list_of_its_own_sees_all_of_it_and_nothing_is_on_demand() -> None:
    own = toolset(agent("poet", "check_board", "memory_search", "read_file"))

    assert [spec.name for spec in own.shown] == [
        "ask_human",
        "check_board",
        "checkpoint",
        "memory_search",
        "publish",
        "read_file",
        "read_ref",
        "send_message",
        "suggest_next",
    ]
    assert own.listed == ()
    # Still served, for what it asks for is done better by a tool that it sees.
    assert own.tools.keys() - {spec.name for spec in own.shown} == {"check_messages"}


def test_what_ends_the_work_or_says_what_done_means_is_always_in_sight() -> None:
    for role in ("coordinator", "worker", "poet"):
        for is_lean in (False, True):
            given = toolset(agent(role), is_lean=is_lean)
            kept = {
                name
                for name, tool in given.tools.items()
                if tool.properties.ends_node or tool.properties.sets_acceptance
            }
            assert kept <= {spec.name for spec in given.shown}


def test_every_tool_that_is_not_shown_is_listed_or_done_better_by_another() -> None:
    for role in ("coordinator", "worker"):
        given = toolset(agent(role))
        rest = given.tools.keys() - {spec.name for spec in given.shown} - set(given.listed)
        assert all(BUILT_IN[name].properties.always_granted for name in rest)


def test_tools_of_ones_own_are_in_sight_unless_they_say_otherwise() -> None:
    assert "weigh" not in shown(agent("worker"), [weigh])
    assert "weigh" in toolset(agent("worker"), [weigh]).listed
    assert "weigh" in shown(agent("worker", "weigh"), [weigh])


# ---- calls -----------------------------------------------------------------------------------

TOOLS = toolset(agent("worker"), [weigh]).tools


def wrapped(**given: Any) -> ToolCall:
    return ToolCall(id="a", name="call_tool", arguments=given)


def weighing(**arguments: Any) -> ToolCall:
    return ToolCall(id="a", name="weigh", arguments=arguments, via="call_tool")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (wrapped(name="weigh", arguments={"what": "tea"}), weighing(what="tea")),
        (wrapped(name=" `weigh` ", arguments={"what": "tea"}), weighing(what="tea")),
        (wrapped(name="functions.weigh()", arguments={"what": "tea"}), weighing(what="tea")),
        (wrapped(name="weigh", arguments='{"what": "tea"}'), weighing(what="tea")),
        (wrapped(name="weigh", what="tea", grams=3), weighing(what="tea", grams=3)),
        (wrapped(name="weigh"), weighing()),
        (wrapped(name="weigh", arguments=""), weighing()),
        (wrapped(name="call_tool", arguments={"name": "weigh"}), weighing()),
        (
            ToolCall(id="a", name="call_tool", malformed='{"name": "weigh",}'),
            weighing(),
        ),
        (
            wrapped(name="weigh", arguments="tea"),
            ToolCall(id="a", name="weigh", malformed="tea", via="call_tool"),
        ),
        (
            wrapped(name="weigh", arguments=["tea"]),
            ToolCall(id="a", name="weigh", malformed='["tea"]', via="call_tool"),
        ),
        (
            wrapped(name="fly", arguments={"to": "the moon"}),
            ToolCall(id="a", name="fly", arguments={"to": "the moon"}, via="call_tool"),
        ),
    ],
)
def test_a_call_by_call_tool_is_a_call_of_the_real_tool(given: ToolCall, meant: ToolCall) -> None:
    assert [read.call for read in read_calls([given], TOOLS)] == [meant]


@pytest.mark.parametrize(
    "given",
    [
        wrapped(arguments={"what": "tea"}),
        wrapped(name="weigh", arguments={"what": "tea"}, grams=3),
        ToolCall(id="a", name="call_tool", malformed='{"name": "we'),
        ToolCall(id="a", name="weigh", arguments={"what": "tea"}),
    ],
)
def test_what_names_no_other_tool_stays_as_it_is(given: ToolCall) -> None:
    assert [read.call for read in read_calls([given], TOOLS)] == [given]


def test_a_request_repeats_the_call_as_the_model_wrote_it() -> None:
    broken = ToolCall(id="a", name="weigh", malformed="tea", via="call_tool")

    assert weighing(what="tea").as_written == wrapped(name="weigh", arguments={"what": "tea"})
    assert broken.as_written == wrapped(name="weigh", arguments="tea")
    assert wrapped(name="fly").as_written == wrapped(name="fly")


async def test_a_tool_out_of_sight_is_served_by_its_name_and_by_call_tool(world: World) -> None:
    goal, told = await run_calls(
        world,
        call("create_work_node", task="Count the words", max_turns=3),
        call("call_tool", name="list_files", arguments={"path": "scratch"}),
    )

    assert told[0].text.startswith("Created node_")
    assert told[1] == ToolAnswer("(empty)", failed=False)
    made = [c for t in await world.turns(goal.id) for c in t.calls]
    assert [(c.name, c.via) for c in made[:2]] == [
        ("create_work_node", None),
        ("list_files", "call_tool"),
    ]


async def test_help_shows_description_schema_and_the_call(world: World) -> None:
    _, told = await run_calls(
        world, call("tool_help", name="cancel_trigger"), call("tool_help", name="cancel_triger")
    )

    assert told[0].text == (
        "cancel_trigger: Cancel one of your triggers that has served its purpose.\n"
        'Arguments, as a JSON schema: {"properties":{"trigger_id":{"description":"As list_triggers '
        'shows it","type":"string"}},"required":["trigger_id"],"type":"object"}\n'
        'Call it with call_tool(name="cancel_trigger", arguments={"trigger_id": …}).'
    )
    assert told[1] == refused("There is no tool 'cancel_triger'. Did you mean cancel_trigger?")


async def test_a_wrong_call_of_a_tool_out_of_sight_is_refused_with_its_schema(
    world: World,
) -> None:
    _, told = await run_calls(
        world,
        call("call_tool", name="promote", arguments={"who": "bob"}),
        call("promote"),
        call("call_tool", name="promot", arguments={}),
    )

    schema = '{"properties":{"worker":{"type":"string"}},"required":["worker"],"type":"object"}'
    usage = f"Its arguments, as a JSON schema: {schema}"
    assert told[0].text.startswith("promote: 'worker' is missing; there is no argument 'who'.")
    assert usage in told[0].text
    assert told[1] == refused(f"promote: 'worker' is missing. {usage}")
    assert told[2].text.startswith("There is no tool called 'promot'. Nearest to it is promote.")


async def test_rules_of_a_team_hold_for_a_call_by_call_tool(world: World) -> None:
    _, told = await run_calls(
        world,
        call("call_tool", name="list_files", arguments={"path": "scratch"}),
        permissions=(Rule(tool="list_files", action="deny"),),
    )

    assert told == [
        refused(
            "Not allowed: this team's rules deny list_files on '*'. Do it another way, or ask the "
            "human."
        )
    ]


async def test_a_call_that_ends_the_work_by_call_tool_counts_only_alone(world: World) -> None:
    done = {"summary": "Done.", "reached": "yes"}
    ending = call("call_tool", name="finish", arguments=done)
    world.script("ada", says(call("list_files"), ending), says(ending), insists=False)
    founded = await world.found("Look around")
    await world.settle()

    [goal] = await world.board(founded.team.id)
    told = [t.text for t in await world.turns(goal.id) if t.role == "tool"]
    assert told[1].startswith("[Not ended] finish counts only as the single call of a reply.")
    assert (goal.status, goal.result) == (NodeStatus.COMPLETED, "Done.")


async def test_the_tools_of_a_thread_stay_the_same_when_a_specialist_s_file_changes(
    world: World,
) -> None:
    seen: list[tuple[str, tuple[ToolSpec, ...]]] = []

    def ask(request: Request) -> Says:
        seen.append((request.transcript.system, request.tools))
        return says(call("ask_human", question="Which one?"))

    def end(request: Request) -> Says:
        seen.append((request.transcript.system, request.tools))
        return says(call("finish", summary="Blue."))

    world.script("ada", ask, end)
    founded = await world.found("Choose")
    await world.settle()
    folder = world.path / "agents"
    folder.mkdir()
    (folder / "coder.md").write_text("---\ndescription: Codes otherwise.\n---\nCode.")
    await world.restart()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "Blue")
    await world.settle()

    before, after = seen
    assert after == before
    assert "- coder: Writes and changes programs" in before[0]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_thread_keeps_its_short_prompt_when_the_window_turns_out_larger(
    tmp_path: Path, database_url: str
) -> None:
    end = says(call("finish", summary="Blue."))
    script = [says(call("ask_human", question="Which?")), end, end]
    async with ModelServer(script) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        for window in (8192, 128_000):
            prices = Prices({"openai/test": Terms(window=window)})
            async with World(
                tmp_path, database_url=database_url, keys=keys, prices=prices
            ) as world:
                if window == 8192:
                    await world.found("Choose", model="openai/test")
                else:
                    [question] = await world.inbox()
                    await world.answer(question, "Blue")
                await world.settle()

    before, after, _ = server.requests
    assert len(before.tools) == 8
    assert after.raw.startswith(before.raw[: before.raw.rindex(b"]}")])
    assert "Each reply must call a tool." in before.system
