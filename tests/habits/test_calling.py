"""Habits C1 to C26: how models name tools, write arguments, batch calls and repeat them."""

import json
from typing import Any

import pytest

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.events.work import TurnAdded
from agiraph.core.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.core.policies.breaker import written_call
from agiraph.core.runtime.steps import MAX_CALLS_PER_REPLY
from agiraph.core.tools.calls import on_demand
from agiraph.core.tools.calls.call_reading import KEPT_CHARACTERS, MOST_BYTES, read_calls
from agiraph.core.tools.toolsets import BUILT_IN
from agiraph.models.wires.chat_completions import ChatReader
from agiraph.testing import Call, Says, World, call, says
from tests.habits.test_words import SQLITE, finish, run, told
from tests.tools.tool_calls import ToolAnswer, refused, run_calls

S = NodeStatus
HELLO = call("bash", command="echo hello")
SAID_HELLO = ToolAnswer("[exit code 0]\nhello")


async def made(world: World, goal: WorkNode) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of the first reply, as they stand in the thread."""
    reply = next(t for t in await world.turns(goal.id) if t.role == "assistant")
    return [(c.name, c.arguments) for c in reply.calls]


async def readings(world: World, goal: WorkNode) -> list[str]:
    """Return how calls of the first reply were read, as the event tells it."""
    events = await world.events(goal.team_id)
    reply = next(e for e in events if e.type == TurnAdded.event_type)
    return [c["reading"] for c in reply.data["calls"] if "reading" in c]


def read(name: str, raw: str | None = None, **given: Any) -> list[tuple[str, dict[str, Any]]]:
    """Read a call without a world; a call that cannot be read has no arguments."""
    written = ToolCall(id="call_1", name=name, arguments=given, malformed=raw)
    return [
        (r.call.name, {"malformed": r.call.malformed} if r.call.malformed else r.call.arguments)
        for r in read_calls([written], BUILT_IN)
    ]


@SQLITE
async def test_c1_a_tool_that_does_not_exist_is_answered_with_those_that_do(world: World) -> None:
    goal, [answer] = await run_calls(world, call("teleport", to="Paris"))

    assert answer.failed
    assert answer.text.startswith("There is no tool called 'teleport'. Your tools: ask_human, ")
    assert goal.status is S.COMPLETED


@SQLITE
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Bash", {"command": "echo hello"}),
        ("Bash", {"command": "echo hello", "description": "Says hello"}),
        ("BASH", {"command": "echo hello"}),
        ("shell", {"cmd": "echo hello"}),
        ("execute_command", {"command": "echo hello"}),
    ],
)
async def test_c2_a_name_from_training_is_made_under_the_tools_own_name(
    world: World, name: str, given: dict[str, Any]
) -> None:
    goal, answers = await run_calls(world, Call(name, given))

    assert answers == [SAID_HELLO]
    assert await made(world, goal) == [("bash", {"command": "echo hello"})]
    assert await readings(world, goal) == [f"it was written as {name!r}"]


def test_c2_names_from_training_are_read_only_with_arguments_that_fit() -> None:
    assert read("Read", file_path="a.md") == [("read_file", {"path": "a.md"})]
    assert read("Write", file_path="a", content="b") == [
        ("write_file", {"path": "a", "content": "b"})
    ]
    assert read("Edit", file_path="a", old_string="b", new_string="c", replace_all=False) == [
        ("edit_file", {"path": "a", "old": "b", "new": "c"})
    ]
    assert read("str_replace_editor", command="view", path="a") == [("read_file", {"path": "a"})]
    assert read("readFile", path="a") == [("read_file", {"path": "a"})]
    # Elsewhere an offset counts lines, and `replace_all` edits more than one place.
    unfit: list[tuple[str, dict[str, Any]]] = [
        ("Read", {"file_path": "a.md", "offset": 20}),
        ("Edit", {"file_path": "a", "old_string": "b", "new_string": "c", "replace_all": True}),
        ("str_replace_editor", {"command": "insert", "path": "a", "insert_line": 3}),
        ("Read", {"file_path": "a", "path": "b"}),
    ]
    assert [read(name, **given) for name, given in unfit] == [[one] for one in unfit]


@SQLITE
async def test_c2_a_name_whose_arguments_do_not_fit_is_answered_with_the_nearest_tool(
    world: World,
) -> None:
    _, [answer] = await run_calls(world, call("Read", file_path="a.md", offset=20, limit=5))

    ours = "Use read_file. It takes: path, offset (optional)."
    assert answer.text == f"There is no tool called 'Read'. {ours}"


@SQLITE
async def test_c3_wrapped_calls_are_taken_apart(world: World) -> None:
    uses = [
        {"recipient_name": "functions.bash", "parameters": {"command": "echo hello"}},
        {"recipient_name": "functions.list_files", "parameters": {}},
    ]
    goal, answers = await run_calls(
        world, call("multi_tool_use.parallel", tool_uses=uses), call("functions.check_board")
    )

    turns = await world.turns(goal.id)
    answers = [t.text for t in turns if t.role == "tool"]
    assert await made(world, goal) == [
        ("bash", {"command": "echo hello"}),
        ("list_files", {}),
        ("check_board", {}),
    ]
    assert answers[:2] == ["[exit code 0]\nhello", "(empty)"]
    assert len({c.id for t in turns for c in t.calls}) == len([c for t in turns for c in t.calls])


@SQLITE
async def test_c3_a_wrapper_without_calls_is_refused(world: World) -> None:
    _, answers = await run_calls(world, call("multi_tool_use.parallel", tool_uses="bash"))

    assert answers == [
        refused(
            "Not called: multi_tool_use.parallel is not a tool. Call the tools directly, each in a "
            "call of its own; one reply may hold several calls."
        )
    ]


def test_c3_wrappers_are_taken_off_twice_at_most() -> None:
    tools = {**BUILT_IN, **{tool.name: tool for tool in on_demand.for_tools(BUILT_IN)}}
    inner = {"name": "Bash", "arguments": '{"command": "ls"}'}
    uses = [{"recipient_name": "functions.call_tool", "parameters": inner}]
    wrapped = [
        ToolCall(id="a", name="call_tool", arguments=inner),
        ToolCall(id="a", name="CallTool", arguments=inner),
        ToolCall(id="a", name="multi_tool_use.parallel", arguments={"tool_uses": uses}),
    ]
    made = [read.call for call in wrapped for read in read_calls([call], tools)]
    assert [(c.name, c.arguments) for c in made] == [("bash", {"command": "ls"})] * 3

    for _ in range(500):
        inner = {"name": "call_tool", "arguments": inner}
    [deep] = read_calls([ToolCall(id="a", name="call_tool", arguments=inner)], tools)
    assert deep.call.refusal is not None
    assert "nested deeper than 64 levels" in deep.call.refusal


@pytest.mark.parametrize(
    "name", ["bash<|channel|>commentary", "bash<|end|>", " bash ", "functions.bash:0", "`bash`"]
)
def test_c4_marks_of_a_format_are_no_part_of_the_name(name: str) -> None:
    assert read(name, command="true") == [("bash", {"command": "true"})]


@SQLITE
async def test_c5_one_answer_says_all_that_is_wrong_with_the_arguments(world: World) -> None:
    _, answers = await run_calls(world, call("write_file", file="a.md", text="b"))

    assert answers == [
        refused(
            "write_file: 'path' is missing; 'content' is missing; there is no argument 'file'; "
            "there is no argument 'text'. It takes: path, content."
        )
    ]


@SQLITE
async def test_c6_a_list_in_a_string_is_the_list(world: World) -> None:
    goal, [answer] = await run_calls(
        world, call("create_work_node", task="Count the chairs", acceptance='["a.md exists"]')
    )

    assert not answer.failed
    [(_, given)] = await made(world, goal)
    assert given["acceptance"] == ["a.md exists"]
    assert await readings(world, goal) == ["'acceptance' was a list inside of a string"]


def test_c6_text_that_may_be_text_is_never_decoded() -> None:
    kept = {"path": "a.json", "content": '["a"]'}
    assert read("write_file", **kept) == [("write_file", kept)]
    words = {"task": "x", "acceptance": "the tests pass"}
    assert read("create_work_node", **words) == [("create_work_node", words)]
    assert read("bash", command="true", timeout="30")[0][1]["timeout"] == "30"
    assert BUILT_IN["bash"].read(
        ToolCall(id="a", name="bash", arguments={"command": "true", "timeout": "30"})
    ) == {"command": "true", "timeout": 30, "network": None}


def test_c6_an_object_in_a_string_is_the_object() -> None:
    given = {"type": "delayed", "action": "Look.", "config": '{"delay_seconds": 60}'}
    assert read("schedule", **given) == [("schedule", {**given, "config": {"delay_seconds": 60}})]


@SQLITE
async def test_c7_an_action_in_a_string_is_that_action_or_refused(world: World) -> None:
    later = {"delay_seconds": 3600}
    says_so = '{"type": "send_message", "to": "human", "content": "An hour has passed"}'
    goal, answers = await run_calls(
        world,
        call("schedule", type="delayed", config=later, action=says_so),
        call("schedule", type="delayed", config=later, action='{"kind": "send", "text": "hi"}'),
        call("schedule", type="delayed", config=later, action='{"type": "send_message", "to"'),
        call("schedule", type="delayed", config=later, action="Look at {the} build."),
        mode="infinite",
    )

    assert [answer.failed for answer in answers] == [False, True, True, False]
    first, last = await world.triggers(goal.team_id)
    assert (first.action, first.payload) == (
        "send_message",
        {"to": "human", "content": "An hour has passed"},
    )
    assert (last.action, last.payload) == ("wake_agent", {"task": "Look at {the} build."})
    assert "Give the object itself" in answers[1].text


def test_c8_arguments_that_were_encoded_twice_are_unwrapped_once() -> None:
    once = [("bash", {"command": "ls"})]
    assert read("bash", raw=r'"{\"command\": \"ls\"}"') == once
    assert read("bash", arguments='{"command": "ls"}') == once
    assert read("bash", arguments={"command": "ls"}) == once
    twice = r'"\"{}\""'
    assert read("bash", raw=twice) == [("bash", {"malformed": twice})]


@SQLITE
@pytest.mark.parametrize(
    "raw",
    [
        '{"command": "echo hello",}',
        "{'command': 'echo hello', 'network': False}",
        '{"command": "echo hello", "network": None}',
        '{"command": "echo\thello"}',
    ],
)
async def test_c9_sloppy_json_is_repaired_where_nothing_is_guessed(world: World, raw: str) -> None:
    goal, answers = await run_calls(world, Call("bash", raw=raw))

    assert answers == [SAID_HELLO]
    assert "the arguments were repaired to a JSON object" in (await readings(world, goal))[0]


@pytest.mark.parametrize(
    "raw",
    [
        "{command: 'ls'}",
        '{"command": "ls" "timeout": 3}',
        "{'command': 'it's'}",
        "{'command': ('ls',)}",
        r"{'command': 'grep \d'}",
        "bash: ls",
        '"a.md"',
        '{"command": "ls"} and then {"command": "pwd"}',
        "{'command': 1e999}",
    ],
)
def test_c9_what_would_be_a_guess_is_shown_back(raw: str) -> None:
    [(name, given)] = read("bash", raw=raw)
    assert (name, given) == ("bash", {"malformed": raw})


@pytest.mark.parametrize("raw", ["null", " ", "[]", '""', "None", "{}"])
def test_c10_nothing_in_any_spelling_is_no_arguments(raw: str) -> None:
    assert read("check_board", raw=raw) == [("check_board", {})]


def test_c10_nothing_at_all_in_a_reply_that_broke_off_is_not_read() -> None:
    cut = ToolCall(id="a", name="check_board", malformed=" ")
    [found] = read_calls([cut], BUILT_IN, is_cut=True)
    assert found.call == cut
    assert found.call.is_cut_off


@SQLITE
async def test_c11_nothing_for_an_optional_argument_is_its_default(world: World) -> None:
    goal, answers = await run_calls(world, call("bash", command="echo hello", timeout=None))

    assert answers == [SAID_HELLO]
    assert await made(world, goal) == [("bash", {"command": "echo hello"})]


@SQLITE
async def test_c13_the_same_call_in_two_spellings_is_made_once(world: World) -> None:
    _, answers = await run_calls(
        world,
        call("bash", command="echo x >> a; cat a"),
        call("Bash", command="echo x >> a; cat a", timeout=None),
        Call("functions.bash", raw=r'"{\"command\": \"echo x >> a; cat a\"}"'),
    )

    again = "Not made again: this reply holds the same call before (call_1). It gave: "
    assert answers[0] == ToolAnswer("[exit code 0]\nx")
    assert [a.text.startswith(again) for a in answers[1:]] == [True, True]


@SQLITE
async def test_c14_several_edits_of_one_file_are_all_in_it(world: World) -> None:
    goal, _ = await run_calls(
        world,
        call("write_file", path="a.md", content="one two three"),
        call("edit_file", path="a.md", old="one", new="1"),
        call("edit_file", path="a.md", old="nine", new="9"),
        call("edit_file", path="a.md", old="three", new="3"),
    )

    assert world.published(goal) == {"a.md": "1 two 3"}


@SQLITE
async def test_c15_a_command_that_builds_on_a_refused_call_is_not_made(world: World) -> None:
    _, answers = await run_calls(
        world,
        call("write_file", path="run.sh", text="echo hello"),
        call("bash", command="sh run.sh"),
        HELLO,
    )

    assert answers[1:] == [
        refused(
            "Not made: write_file (call_1) before it in this reply failed, and this call names "
            "'run.sh' too. Calls of this reply so far: write_file (call_1): failed. Read the "
            "answer of the failed one; if this call is still right, make it again."
        ),
        SAID_HELLO,
    ]


@pytest.mark.slow
@SQLITE
async def test_c15_a_command_after_one_that_failed_is_made_and_says_so(world: World) -> None:
    _, answers = await run_calls(
        world,
        call("bash", command="test -e ./out.txt"),
        call("bash", command="echo x > ./out.txt"),
        HELLO,
    )

    assert answers[1:] == [
        ToolAnswer(
            "[exit code 0]\n[Runtime] Made although bash (call_1) before it in this reply failed, "
            "which names './out.txt' too. Check whether this call was still right."
        ),
        SAID_HELLO,
    ]


@SQLITE
async def test_c16_calls_above_the_limit_are_answered_and_not_made(world: World) -> None:
    calls = [call("read_file", path=f"{n}.md") for n in range(MAX_CALLS_PER_REPLY + 2)]
    _, answers = await run_calls(world, *calls)

    late = f"Not made: at most {MAX_CALLS_PER_REPLY} calls a turn. Make it again."
    assert [a.text == late for a in answers] == [False] * MAX_CALLS_PER_REPLY + [True] * 2


BAR = "\uff5c"


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>',
        "<function=bash>\n<parameter=command>ls</parameter>\n</function>",
        '<function=bash>{"command": "ls"}</function>',
        '<invoke name="bash"><parameter name="command">ls</parameter></invoke>',
        '[TOOL_CALLS] [{"name": "bash", "arguments": {"command": "ls"}}]',
        '[TOOL_CALLS]bash[ARGS]{"command": "ls"}',
        'I run it.\n```json\n{"name": "Bash", "arguments": {"command": "ls"}}\n```',
        '{"name": "bash", "parameters": {"command": "ls"}}',
        '<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}',
        '<|python_tag|>bash.call(command="ls")',
        '<call_record name="bash">ls</call_record>',
        f"<{BAR}tool▁calls▁begin{BAR}><{BAR}tool▁call▁begin{BAR}>function<{BAR}tool▁sep{BAR}>bash",
        f"<{BAR}tool▁calls▁begin{BAR}><{BAR}tool▁call▁begin{BAR}>bash<{BAR}tool▁sep{BAR}>{{}}",
        "<tool_call>bash<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0"
        '<|tool_call_argument_begin|>{"command": "ls"}<|tool_call_end|>',
        '<|channel|>commentary to=functions.bash <|message|>{"command": "ls"}',
        '```tool_code\nprint(default_api.bash(command="ls"))\n```',
        "<bash>\n<command>ls</command>\n</bash>",
        '<tool_call>{"name": "Shell", "arguments": {"command": "ls"}}</tool_call>',
    ],
)
def test_c17_every_known_form_of_a_written_call_is_found_with_its_tool(text: str) -> None:
    assert written_call(text, BUILT_IN) == "bash"


def test_c17_words_about_tools_and_other_json_are_no_calls() -> None:
    words = [
        "I will call bash now.",
        '```json\n{"name": "Ada", "age": 7}\n```',
        "The page uses <b>bold</b> text and a <bash> mark without an end.",
        "a [TOOL] and {braces}",
    ]
    assert [written_call(text, BUILT_IN) for text in words] == [None] * len(words)


@SQLITE
async def test_c18_a_call_in_thoughts_is_never_made(world: World) -> None:
    thought = Says(thinking='<tool_call>{"name": "bash", "arguments": {}}</tool_call>')
    goal, _ = await run(world, thought, *finish())

    [nudge] = await told(world, goal)
    assert "nothing in them is called" in nudge
    assert goal.status is S.COMPLETED
    called = [c.name for t in await world.turns(goal.id) for c in t.calls]
    assert called
    assert set(called) == {"finish"}


@SQLITE
async def test_c19_only_what_the_reply_itself_calls_is_made(world: World) -> None:
    quoted = 'I could write <tool_call>{"name": "bash", "arguments": {"command": "id"}}</tool_call>'
    goal, _ = await run(world, says(quoted, HELLO), *finish())

    assert await made(world, goal) == [("bash", {"command": "echo hello"})]
    assert await told(world, goal) == []


@SQLITE
async def test_c20_arguments_that_run_together_are_several_calls(world: World) -> None:
    raw = '{"path": "."}{"path": "nowhere"}{"path": "."}'
    goal, _ = await run_calls(world, Call("list_files", raw=raw))

    assert await made(world, goal) == [
        ("list_files", {"path": "."}),
        ("list_files", {"path": "nowhere"}),
    ]
    assert await readings(world, goal) == ["2 calls ran together"] * 2


@SQLITE
async def test_c20_what_is_not_whole_objects_is_refused_with_what_was_received(
    world: World,
) -> None:
    raw = '{"path": "."} then {"path": "b"}'
    _, [answer] = await run_calls(world, Call("list_files", raw=raw))

    assert answer.failed
    assert answer.text.startswith(
        f"The arguments of list_files were not a JSON object but: {raw!r}"
    )


def chat_calls(*deltas: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a stream of chat completions with these deltas."""
    reader = ChatReader("openai")
    for parts in deltas:
        list(reader.take({"choices": [{"delta": {"tool_calls": parts}}]}))
    list(reader.take({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}))
    reader.finish()
    reply = reader.reply.build()
    return [(r.call.name, r.call.arguments) for r in read_calls(reply.calls, BUILT_IN)]


def test_c20_calls_without_index_and_id_are_told_apart() -> None:
    first, second = {"command": "ls"}, {"command": "pwd"}
    parts = [{"function": {"name": "bash", "arguments": json.dumps(a)}} for a in (first, second)]
    assert chat_calls(parts[:1], parts[1:]) == [("bash", first), ("bash", second)]


@SQLITE
async def test_c23_an_oversized_argument_is_refused_and_only_its_beginning_is_sent_again(
    world: World,
) -> None:
    long = call("write_file", path="a.md", content="x" * MOST_BYTES)
    goal, ada = await run(world, says(long), says(HELLO), *finish())

    turns = await world.turns(goal.id)
    [(_, kept)] = await made(world, goal)
    assert len(kept["content"]) < KEPT_CHARACTERS + 100
    answer = next(t for t in turns if t.role == "tool")
    assert answer.text.startswith("write_file: not called, because its arguments have 262,")
    assert "Write it in smaller pieces" in answer.text
    assert answer.failed
    # What is sent of it is the same in every request.
    sent = [t.calls for request in ada.requests[1:] for t in request.turns[2:3]]
    assert sent == [sent[0]] * len(sent)
    assert world.published(goal) == {}


def test_c23_text_in_place_of_arguments_is_shortened_and_still_told_from_a_cut() -> None:
    whole, cut = "{'a': " + "x" * 5000 + "}", '{"content": "' + "x" * 5000
    calls = [
        ToolCall(id=str(n), name="write_file", malformed=m) for n, m in enumerate((whole, cut))
    ]
    first, second = (r.call for r in read_calls(calls, BUILT_IN))

    assert first.refusal is not None
    assert first.refusal.startswith("The arguments of write_file were not a JSON object but: ")
    assert second.refusal is not None
    assert "cut off by the output limit" in second.refusal
    assert max(len(c.malformed or "") for c in (first, second)) < KEPT_CHARACTERS + 100


@SQLITE
async def test_c24_escaped_characters_are_kept_as_given(world: World) -> None:
    goal, [_, answer] = await run_calls(
        world,
        call("write_file", path="a.html", content="a &amp;&amp; b &lt; c"),
        call("bash", command="true &amp;&amp; echo hello"),
    )

    assert world.published(goal) == {"a.html": "a &amp;&amp; b &lt; c"}
    assert answer.failed


@SQLITE
async def test_c25_a_refused_edit_shows_the_nearest_lines_as_they_are(world: World) -> None:
    code = "def a():\n    return 1\n\n\ndef b(x):\n    y = x + 1\n    return y\n"
    goal, answers = await run_calls(
        world,
        call("write_file", path="a.py", content=code),
        call("edit_file", path="a.py", old="def b(x):\n  y = x + 1", new="def b(x):\n  y = x"),
        call("edit_file", path="a.py", old="def c(x): pass", new="def b(x):\n    y = x + 1"),
        call("edit_file", path="a.py", old="return", new="yield"),
    )

    shown = ["", "", "def b(x):", "    y = x + 1", "    return y", ""]
    lines = "\n".join(f"    {number} | {line}" for number, line in enumerate(shown, 3))
    assert answers[1] == refused(
        "'def b(x):\\n  y = x + 1' does not stand in a.py, so nothing was changed. It stands there "
        "with other white space. The nearest lines are these; copy from them what is behind the "
        f"bar:\n{lines}"
    )
    assert "The new text stands there already, at line 5" in answers[2].text
    assert answers[3].text.startswith("'return' stands 2 times in a.py, at lines 2, 7, so nothing")
    assert world.published(goal) == {"a.py": code}


@SQLITE
async def test_c26_a_command_that_waits_for_input_ends(world: World) -> None:
    _, answers = await run_calls(world, call("bash", command="read -r line; cat; echo end"))

    assert answers == [ToolAnswer("[exit code 0]\nend")]


@SQLITE
async def test_c26_a_command_that_runs_for_ever_ends_with_all_its_processes(world: World) -> None:
    serves = "echo begun; (sleep 60; echo late > late) & sleep 60"
    goal, answers = await run_calls(world, call("bash", command=serves, timeout=1))

    assert answers == [refused("[ended after 1 s: it ran out of time]\nbegun")]
    assert world.published(goal) == {}


@SQLITE
async def test_c17_calls_as_text_in_a_row_fail_the_node_and_name_the_setting(world: World) -> None:
    text = '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>'
    goal, _ = await run(world, *[says(text)] * 3)

    assert (goal.status, goal.stop_reason, goal.result) == (S.FAILED, StopReason.SILENT, None)
    [message] = [m for m in await world.inbox() if m.kind == "failure"]
    assert "set the tool parser of the model's server" in message.text
    assert "calls = …" in message.text


NAMES_OF_OTHERS = {
    "TodoWrite": "checkpoint",
    "Task": "assign_task",
    "Glob": "bash",
    "Grep": "bash",
    "apply_patch": "edit_file",
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "edit_file",
    "Bash": "bash",
    "WebFetch": "web_fetch",
    "AskUserQuestion": "ask_human",
}


@SQLITE
@pytest.mark.parametrize(("theirs", "ours"), NAMES_OF_OTHERS.items())
async def test_a_tool_of_another_product_is_answered_with_one_line(
    world: World, theirs: str, ours: str
) -> None:
    goal, _ = await run(world, says(call(theirs, pattern="x", todos=[])), *finish())

    answer = next(t for t in await world.turns(goal.id) if t.role == "tool")
    assert (answer.failed, "\n" in answer.text) == (True, False)
    assert ours in answer.text
    assert "Your tools:" not in answer.text
    assert len(answer.text) < 500


@SQLITE
async def test_half_a_character_breaks_neither_a_file_nor_a_message(world: World) -> None:
    writes = call("write_file", path="a.md", content="a\ud800b \ud83d\ude00")
    sends = call("send_message", to="human", content="Half: \udc00")
    goal, _ = await run(world, says("Words \ud800", writes, sends), *finish("It is \udfff done."))

    assert (goal.status, goal.result) == (S.COMPLETED, "It is \ufffd done.")
    assert world.published(goal) == {"a.md": "a\ufffdb \U0001f600"}
    assert "Half: \ufffd" in [
        m.text for m in await world.conversation(await world.agent(goal.assignee_id))
    ]
