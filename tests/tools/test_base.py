"""Tools: schema, description and errors of a call come from the function."""

import json
import re
from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import Field

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import ToolCall, ToolSpec
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.tools import ToolProperties
from agiraph.core.run_context import RunContext
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool, tool
from agiraph.core.tools.toolsets import BUILT_IN, tools_for
from agiraph.testing import ManualClock
from tests.wording import Wording, refusals


@tool(effect="repeatable")
async def look(
    ctx: RunContext,
    title: Annotated[str, Field(min_length=1, description="What to look at")],
    often: int = 1,
    among: list[str] | None = None,
) -> Answer:
    """Look at something. Use it to look,
    not to touch.

    Look twice.
    """
    return Done(f"{title} {often} {among}")


@tool(effect="transaction", polls=True)
def touch(tx: Tx, ctx: RunContext) -> Answer:
    return Done("touched")


def look_call(**arguments: Any) -> ToolCall:
    return ToolCall(id="a", name="look", arguments=arguments)


def test_the_schema_is_made_from_the_signature_without_what_a_call_is_not_written_from() -> None:
    assert look.spec == ToolSpec(
        name="look",
        description="Look at something. Use it to look, not to touch.\nLook twice.",
        schema={
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "What to look at"},
                "often": {"type": "integer", "default": 1},
                "among": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["title"],
        },
    )


def test_the_arguments_of_the_runtime_are_not_in_the_schema() -> None:
    assert touch.spec.schema == {"type": "object", "properties": {}}
    assert (touch.effect, touch.spec.description) == ("transaction", "")
    assert touch.properties == ToolProperties(polls=True)


def test_arguments_are_read_in_the_order_of_the_signature() -> None:
    read = look.read(look_call(often="3", title="a"))

    assert list(read.items()) == [("title", "a"), ("often", 3), ("among", None)]


WRONG_CALLS = [
    look_call(),
    look_call(title="a", where="b"),
    look_call(title=""),
    look_call(title=5),
    look_call(title={"a": 1}),
    look_call(title="a", often=None),
    look_call(title="a", among=[1]),
    look_call(where="b"),
]


def test_a_wrong_call_is_refused_with_what_is_wrong_and_the_arguments(wording: Wording) -> None:
    wording(refusals(WRONG_CALLS, look.read))


@pytest.mark.parametrize("raw", ['{"title": "a', '{"title": ["a"', ""])
def test_arguments_that_break_off_are_refused_as_cut_off(raw: str) -> None:
    with pytest.raises(Refused, match=r"^look: Not called: cut off by the output limit"):
        look.read(replace(look_call(title="a"), malformed=raw))


@pytest.mark.parametrize("raw", ["[1]", "x" * 1000])
def test_arguments_that_are_not_an_object_are_quoted_in_the_refusal(raw: str) -> None:
    said = (
        f"The arguments of look were not a JSON object but: {raw[:200]!r}. "
        "It takes: title, often (optional), among (optional)."
    )
    with pytest.raises(Refused, match=f"^{re.escape(said)}$"):
        look.read(replace(look_call(title="a"), malformed=raw))


def test_a_tool_without_arguments_refuses_any_argument() -> None:
    with pytest.raises(Refused, match=r"touch: there is no argument 'a'. It takes: nothing\."):
        touch.read(ToolCall(id="a", name="touch", arguments={"a": 1}))


@pytest.mark.parametrize("built_in", BUILT_IN.values(), ids=BUILT_IN)
def test_every_built_in_tool_says_in_its_first_sentence_what_it_does(built_in: Tool) -> None:
    first, dot, _ = built_in.spec.description.partition(".")

    assert (dot, len(first) <= 120, "\n" in first) == (".", True, False)


MOST_ARGUMENTS, MOST_CHARACTERS = {"assign_task": 11}, {"assign_task": 450}
"""Of `assign_task`, because each part of a brief is an argument, and an example shows them."""
NESTED = {("create_work_node", "refs"), ("reconvene", "verdicts")}
"""Arguments with a name for each file or task, which no flat value can have."""
IN_SIGHT = [tool for tool in BUILT_IN.values() if tool.properties.in_sight & tool.properties.roles]


@pytest.mark.parametrize("shown", IN_SIGHT, ids=[tool.name for tool in IN_SIGHT])
def test_a_tool_in_sight_is_described_shortly_and_has_flat_arguments(shown: Tool) -> None:
    fields = shown.spec.schema["properties"].items()
    arguments = {name: field for name, field in fields if name not in shown.properties.rare}

    assert len(shown.spec.description) <= MOST_CHARACTERS.get(shown.name, 300)
    assert len(arguments) <= MOST_ARGUMENTS.get(shown.name, 7)
    for name, field in arguments.items():
        is_flat = field["type"] in {"string", "integer", "boolean", "number"}
        is_list = (field["type"], field.get("items", {}).get("type")) == ("array", "string")
        assert (is_flat or is_list) is ((shown.name, name) not in NESTED), name
        assert len(field.get("description", "")) <= 80, name


def test_definitions_stand_where_they_are_used() -> None:
    contract = BUILT_IN["start_stage"].spec.schema["properties"]["contract"]

    assert contract["type"] == "object"
    assert contract["properties"]["wants"]["enum"] == ["all", "majority", "any"]
    assert all("$" not in json.dumps(built_in.spec.schema) for built_in in BUILT_IN.values())


# ---- tools of each role --------------------------------------------------------------------


def agent(role: str, *tools: str) -> Agent:
    now = ManualClock().now()
    fields: Any = {"id": "agent_1", "team_id": "team_1", "name": "ada", "model": "demo"}
    return Agent(role=role, created_at=now, tools=tools, **fields)


COMMON = [
    "ask_human", "assign_task", "bash", "cancel_work_node", "check_board", "check_messages",
    "checkpoint",
    "cancel_trigger", "create_work_node", "edit_file", "job_status", "knowledge_search",
    "list_files",
    "list_triggers", "memory_read", "memory_search", "memory_write", "read_file",
    "find_in_page", "read_links", "read_ref",
    "research_start", "schedule", "send_message", "task_output", "web_fetch", "web_search",
    "write_file",
]  # fmt: skip
LEADING = [
    "assign_worker",
    "extend_task",
    "finish",
    "promise",
    "promote",
    "reconvene",
    "set_acceptance",
    "spawn_worker",
    "start_stage",
]
WORKING = ["publish", "suggest_next"]


def test_each_role_has_its_tools_in_a_fixed_order() -> None:
    assert list(tools_for(agent("coordinator"))) == sorted([*COMMON, *LEADING])
    assert list(tools_for(agent("worker"))) == sorted([*COMMON, *WORKING])
    assert list(tools_for(agent("poet"))) == sorted([*COMMON, *WORKING])


def test_an_agent_with_few_tools_keeps_publish_or_finish() -> None:
    assert list(tools_for(agent("worker", "read_file"))) == ["publish", "read_file"]
    assert list(tools_for(agent("coordinator", "bash", "publish"))) == [
        "bash",
        "finish",
        "set_acceptance",
    ]


def test_custom_tools_are_added_for_everyone_or_by_name() -> None:
    assert list(tools_for(agent("worker"), [look])) == sorted([*COMMON, *WORKING, "look"])
    assert tools_for(agent("worker", "look"), [look])["look"] is look
    assert list(tools_for(agent("worker", "bash"), [look])) == ["bash", "publish"]


def test_an_unknown_tool_is_refused_by_name() -> None:
    with pytest.raises(Refused, match=r"^There are no tools called fly, jump\.$"):
        tools_for(agent("worker", "jump", "bash", "fly"))
