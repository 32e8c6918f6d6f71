"""Own tools: what a marked function becomes, and what a model is told of its results and faults."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from agiraph import ToolContext, World, call, says, tool
from agiraph.core.domain.errors import Refused
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.core.tools.base import Tool
from agiraph.core.tools.own_code import ToolDeclaration, declaration_of
from agiraph.features.extensions.own_threads import (
    LONGEST_ERROR,
    MOST_BYTES,
    OwnThreads,
    TookTooLong,
    as_text,
    error_text,
)
from agiraph.features.extensions.own_tools import make_tool
from agiraph.redaction import keep
from tests.tools.strangers import undecided
from tests.tools.tool_calls import ToolAnswer, run_calls
from tests.wording import Wording, refusals

SECRET = "a-secret-of-the-tool"


@tool(touches="reads", secrets=["key"], timeout_s=5)
def look_up(
    ctx: ToolContext,
    city: Annotated[str, "Name of the town"],
    days: Annotated[int, Field(ge=1, le=7, description="How many")] = 1,
    unit: Literal["c", "f"] = "c",
    near: list[str] | None = None,
) -> dict[str, Any]:
    """Look up the weather.

    Use it for forecasts.

    Args:
        unit: Degrees Celsius
            or Fahrenheit.
    Returns:
        a dictionary
    """
    return {"city": city, "days": days, "unit": unit, "near": near, "key": ctx.secret("key")}


def own_tool(marked: Callable[..., Any]) -> Tool:
    """Return the tool that models get from a marked function."""
    declared = declaration_of(marked)
    assert isinstance(declared, ToolDeclaration)
    return make_tool(declared, NamedSecrets().get, OwnThreads())


def test_the_schema_comes_from_type_hints_and_the_docstring() -> None:
    made = own_tool(look_up)

    assert (made.name, made.effect, made.properties.outside) == ("look_up", "repeatable", "reads")
    assert made.spec.description == "Look up the weather.\nUse it for forecasts."
    assert made.spec.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the town"},
            "days": {"type": "integer", "description": "How many", "default": 1},
            "unit": {
                "type": "string",
                "enum": ["c", "f"],
                "description": "Degrees Celsius or Fahrenheit.",
                "default": "c",
            },
            "near": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city"],
    }


@pytest.mark.parametrize(
    ("touches", "effect"),
    [("nothing", "repeatable"), ("reads", "repeatable"), ("changes", "once"), ("sends", "once")],
)
def test_calls_that_change_or_send_are_never_repeated_unless_the_tool_says_so(
    touches: Any, effect: str
) -> None:
    def act(x: str) -> str:
        """Act."""
        return x

    assert own_tool(tool(touches=touches)(act)).effect == effect
    assert own_tool(tool(touches=touches, effect="repeatable")(act)).effect == "repeatable"
    assert own_tool(tool()(act)).properties.outside == "sends"


def undocumented(x: str) -> str:
    return x


def untyped(x) -> str:  # type: ignore[no-untyped-def]
    """Act."""
    return x


def any_number(*x: str) -> str:
    """Act."""
    return ""


def no_json(x: threading.Lock) -> str:
    """Act."""
    return ""


def positional(x: str, /) -> str:
    """Act."""
    return x


def talkative(x: str) -> str:
    return x


talkative.__doc__ = "word " * 500


WRONG_DECLARATIONS = [
    (undocumented, {}),
    (untyped, {}),
    (any_number, {}),
    (positional, {}),
    (talkative, {}),
    (untyped, {"name": "bash"}),
    (untyped, {"name": "webfetch"}),
    (untyped, {"name": "wetter_für_köln"}),
    (untyped, {"name": "Weather"}),
    (untyped, {"timeout_s": 0}),
    (untyped, {"timeout_s": 4000}),
    (untyped, {"roles": ["boss"]}),
    (untyped, {"touches": "everything"}),
    (untyped, {"effect": "sometimes"}),
]


def test_a_wrong_declaration_is_refused_with_its_fault(wording: Wording) -> None:
    acts = {act.__name__: act for act, _ in WRONG_DECLARATIONS}

    def declare(name: str, more: dict[str, Any]) -> None:
        given: dict[str, Any] = {"touches": "nothing"} | more
        own_tool(tool(**given)(acts[name]))

    wording(refusals([(act.__name__, more) for act, more in WRONG_DECLARATIONS], declare))


def test_an_argument_without_a_json_schema_is_a_fault() -> None:
    with pytest.raises(Refused, match="the arguments of the tool 'no_json' have no JSON schema"):
        own_tool(tool(touches="nothing")(no_json))


class Town(BaseModel):
    name: str


@dataclass
class Spot:
    x: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, "(It returned nothing.)"),
        ("", "(It returned nothing.)"),
        ("null\0byte", "null\N{REPLACEMENT CHARACTER}byte"),
        ("lone \ud800 surrogate", "lone ? surrogate"),
        (b"bytes of text", "bytes of text"),
        (3.5, "3.5"),
        ({"a": [1, (2, 3)]}, '{\n  "a": [\n    1,\n    [\n      2,\n      3\n    ]\n  ]\n}'),
        (Town(name="Oslo"), '{\n  "name": "Oslo"\n}'),
        ([Spot(1)], '[\n  {\n    "x": 1\n  }\n]'),
        ({1: {2}}, '{\n  "1": [\n    2\n  ]\n}'),
    ],
)
def test_results_become_text(value: Any, text: str) -> None:
    assert as_text("t", value) == text


@pytest.mark.slow
def test_a_long_result_is_cut_and_says_so() -> None:
    for value, size in [
        ("x" * 50_000_000, "50,000,000 characters"),
        (b"x" * 50_000_000, "50,000,000 bytes"),
        (["x" * 1000] * 1000, "1,006,002 bytes of JSON"),
    ]:
        text = as_text("t", value)
        assert len(text) < MOST_BYTES + 100
        assert text.endswith(f"(Cut here: t returned {size}.)")


def test_a_secret_at_the_cut_leaves_no_part_of_it() -> None:
    keep({"a secret of results": SECRET})
    before = "x" * (MOST_BYTES - 5)
    for value in (before + SECRET + "y" * 99, (before + SECRET + "y" * 99).encode()):
        assert SECRET[:4] not in as_text("t", value)
    assert SECRET[:4] not in error_text(ValueError("x" * (LONGEST_ERROR - 5) + SECRET))


class Endless:
    pass


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (b"\xff\xfe", "returned 2 bytes that are not text"),
        (Endless(), "returned a Endless, which is neither text nor JSON"),
        ({"x": Endless()}, "returned a dict, which is neither text nor JSON"),
        (lambda: 1, "returned a function"),
    ],
)
def test_a_result_that_is_no_text_is_refused(value: Any, fault: str) -> None:
    with pytest.raises(Refused, match=fault):
        as_text("t", value)


def _deep() -> list[Any]:
    deep: list[Any] = []
    deep.append(deep)
    return deep


def test_a_result_that_contains_itself_is_refused() -> None:
    with pytest.raises(Refused, match="neither text nor JSON"):
        as_text("t", _deep())


@tool(touches="nothing")
def fail(how: str) -> str:
    """Fail in this way."""
    raise {
        "value": ValueError(f"wrong, {SECRET}"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "base": BaseException("base"),
        "cancel": asyncio.CancelledError(),
        "stop": StopIteration(),
    }[how]


@tool(touches="nothing")
async def wait_for(word: str) -> str:
    """Wait a moment."""
    await asyncio.sleep(0)
    return f"waited for {word} in {threading.current_thread().name}"


async def test_results_errors_and_secrets_as_a_model_sees_them(tmp_path: Path) -> None:
    tools = [look_up, fail, wait_for]
    secrets = {"key": SECRET}
    async with World(tmp_path, tools=tools, secrets=secrets, easy_endings=True) as world:
        _, told = await run_calls(
            world,
            call("look_up", city="Oslo"),
            call("wait_for", word="it"),
            *(call("fail", how=how) for how in ("value", "exit", "interrupt", "base", "cancel")),
            call("fail", how=5),
        )
    assert told[1:] == [
        ToolAnswer("waited for it in own wait_for"),
        ToolAnswer("fail failed: ValueError: wrong, [hidden]", failed=True),
        ToolAnswer("fail failed: SystemExit: 3", failed=True),
        ToolAnswer("fail failed: KeyboardInterrupt", failed=True),
        ToolAnswer("fail failed: BaseException: base", failed=True),
        ToolAnswer("fail failed: CancelledError", failed=True),
        ToolAnswer(
            "fail: 'how' is wrong (Input should be a valid string). It takes: how.", failed=True
        ),
    ]
    # It reads from outside: the answer is fenced and labelled, and the secret is hidden in it.
    assert "the program look_up" in told[0].text
    assert '"key": "[hidden]"' in told[0].text
    assert SECRET not in told[0].text


async def test_a_secret_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    @tool(touches="nothing", secrets=["other"])
    def steal(ctx: ToolContext, name: str) -> str:
        """Read a secret."""
        return ctx.secret(name)

    async with World(tmp_path, tools=[steal], secrets={"key": SECRET}, easy_endings=True) as world:
        _, told = await run_calls(world, call("steal", name="key"), call("steal", name="other"))
    assert told == [
        ToolAnswer(
            "'steal' may not read the secret 'key': its declaration does not name it. Write "
            'secrets=["key"] into its decorator.',
            failed=True,
        ),
        ToolAnswer(
            "steal failed: There is no secret 'other': write NAME = \"env:VARIABLE\" or NAME = "
            '"file:/path/to/a/file" into [secrets] of agiraph.toml. Only the human can fix that.',
            failed=True,
        ),
    ]


async def test_a_tool_that_sends_asks_a_person_once_foreign_words_were_read(
    tmp_path: Path,
) -> None:
    sent: list[str] = []

    @tool(touches="sends")
    def post(text: str) -> str:
        """Post a text."""
        sent.append(text)
        return "posted"

    tools, secrets = [post, look_up], {"key": SECRET}
    async with World(tmp_path, tools=tools, secrets=secrets, easy_endings=True) as world:
        world.script(
            "ada",
            says(call("post", text="before")),
            says(call("look_up", city="Oslo")),
            says(call("post", text="after")),
            says(call("finish", summary="done")),
        )
        founded = await world.found("Post it")
        await world.settle()
        [question] = await undecided(world, founded)
    assert sent == ["before"]
    assert "the tool would send something to others" in question.text


async def test_code_that_blocks_holds_up_nothing_and_is_given_up() -> None:
    threads, ended = OwnThreads(), threading.Event()

    def spin() -> None:
        try:
            while True:
                pass
        finally:
            ended.set()

    async def go_on() -> bool:
        return ended.is_set()

    spinning = asyncio.create_task(threads.call("spin", spin, timeout_s=0.05))
    assert await go_on() is False  # this loop is free while the code spins
    with pytest.raises(TookTooLong):
        await spinning
    assert await asyncio.to_thread(ended.wait, 30)


async def test_an_async_function_that_blocks_its_loop_is_given_up_too() -> None:
    release = threading.Event()

    async def block() -> None:
        release.wait(5)

    with pytest.raises(TookTooLong):
        await OwnThreads().call("block", lambda: block(), timeout_s=0.05)
    release.set()


async def test_calls_that_never_end_are_counted_and_then_refused() -> None:
    threads, release = OwnThreads(most_per_name=2), threading.Event()

    async def hang() -> None:
        with pytest.raises(TookTooLong):
            await threads.call("hang", lambda: release.wait(10), timeout_s=0.01)

    await hang()
    await hang()
    with pytest.raises(Refused, match="2 earlier calls of it still run"):
        await threads.call("hang", lambda: None, timeout_s=1)
    assert await threads.call("other", lambda: 1, timeout_s=1) == 1
    release.set()


async def test_code_that_outlives_its_call_runs_no_command_any_more(tmp_path: Path) -> None:
    said: list[str] = []
    release, ended = threading.Event(), threading.Event()

    @tool(touches="nothing", timeout_s=0.05)
    def linger(ctx: ToolContext) -> str:
        """Run a command when it is too late."""
        try:
            release.wait(10)
        except BaseException as error:
            said.append(type(error).__name__)
        try:
            ctx.run("echo too late")
        except Refused as error:
            said.append(str(error))
        ended.set()
        return "late"

    async with World(tmp_path, tools=[linger], easy_endings=True) as world:
        _, told = await run_calls(world, call("linger"))
        release.set()
        assert await asyncio.to_thread(ended.wait, 10)
    assert told == [ToolAnswer("linger did not return within 0.05 seconds.", failed=True)]
    assert said == ["_Stopped", "linger: the call has ended; no command was run."]


@pytest.mark.slow
async def test_a_command_of_a_tool_runs_in_the_sandbox_of_its_agent(tmp_path: Path) -> None:
    @tool(touches="nothing")
    def run(ctx: ToolContext, command: str) -> str:
        """Run a command."""
        ended = ctx.run(command, timeout_s=20)
        return f"{ended.exit_code} {ended.output.strip()}"

    (tmp_path / "home" / "tools").mkdir(parents=True)
    (tmp_path / "home" / "tools" / "secret.py").write_text("")
    home = tmp_path / "home"
    async with World(home, tools=[run], sandbox_readable=(), easy_endings=True) as world:
        goal, told = await run_calls(
            world,
            call("run", command="echo hello > made.txt; cat made.txt; exit 3"),
            call("run", command=f"ls {home}/tools; touch {home}/tools/evil.py; echo over"),
        )
        assert told[0] == ToolAnswer("3 hello")
        assert told[1].text.endswith("over")
        assert "secret.py" not in told[1].text
        assert not (home / "tools" / "evil.py").exists()
        assert world.published(goal) == {"made.txt": "hello\n"}
