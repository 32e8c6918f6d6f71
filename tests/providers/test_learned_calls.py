"""Learned calls: a model whose calls come as text is noticed, proven by a probe, and then read."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agiraph.domain.chat import ToolSpec, Turn
from agiraph.providers.base import Model, Request
from agiraph.providers.catalogue import Catalogue
from agiraph.providers.facts.prices import Prices
from agiraph.providers.options import CallForm, ModelOptions
from agiraph.providers.probe import probe
from agiraph.providers.registry import Account, Keys, Registry
from agiraph.providers.servers import Server
from agiraph.testing import ManualClock, ModelServer, call, says
from agiraph.testing.model_server import Status, Step
from tests.habits.wire_streams import chat
from tests.providers.transcripts import thread, turn

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = (ToolSpec(name="bash", description="Run.", schema=SCHEMA),)


def hermes(name: str, **given: str) -> str:
    inner = ", ".join(f'"{key}": "{value}"' for key, value in given.items())
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{{inner}}}}}\n</tool_call>'


def qwen(name: str, **given: str) -> str:
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in given.items())
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def llama(name: str, **given: str) -> str:
    return hermes(name, **given).replace("arguments", "parameters")[12:-13]


def mistral(name: str, **given: str) -> str:
    return f"[TOOL_CALLS]{hermes(name, **given)[12:-13].join('[]')}"


FORMS = {"hermes": hermes, "qwen": qwen, "llama": llama, "mistral": mistral}
LS, WEATHER = hermes("bash", command="ls"), hermes("get_weather", city="Paris")


class House:
    """A server of one's own with the chat wire, and the models on it."""

    def __init__(self, server: ModelServer, calls: CallForm | None = None) -> None:
        keys = Keys(
            {"openai": Account(key="k", base_url=server.openai_url)},
            servers={"house": Server(base_url=server.openai_url, calls=calls)},
            options={"house/set": ModelOptions(calls="native")},
        )
        clock = ManualClock()
        self.models = Catalogue(Registry(keys, clock), Prices(), clock)
        self.server = server

    def model(self, name: str = "house/m") -> Model:
        return self.models.resolve(name)

    @property
    def asked(self) -> list[tuple[str, ...]]:
        """The tools of each request."""
        return [seen.tools for seen in self.server.requests]


@pytest.fixture
async def houses() -> AsyncIterator[list[House]]:
    opened: list[House] = []
    yield opened
    for house in opened:
        await house.models.close()


def request(*turns: Turn, **more: Any) -> Request:
    return Request(transcript=thread(turn("user", "Look."), *turns), tools=TOOLS, **more)


@pytest.mark.parametrize("name", FORMS)
async def test_a_form_is_proven_by_a_probe_and_used_from_then_on(
    houses: list[House], name: str
) -> None:
    form = FORMS[name]
    steps: list[Step] = [
        says(
            f"I look.\n{form('bash', command='ls')}"
            if name != "llama"
            else llama("bash", command="ls")
        ),
        says(form("get_weather", city="Paris")),
        says(form("bash", command="pwd")),
    ]
    async with ModelServer(steps) as server:
        houses.append(House(server))
        replies = [await houses[0].model().reply(request()) for _ in range(2)]
        learned = houses[0].models.learned_call_form("house/m")

    made = [[(c.name, c.arguments) for c in reply.calls] for reply in replies]
    assert made == [[("bash", {"command": "ls"})], [("bash", {"command": "pwd"})]]
    assert replies[0].text == ("" if name == "llama" else "I look.")
    assert houses[0].asked == [("bash",), ("get_weather",), ("bash",)]
    assert learned == name


async def test_the_probe_is_paid_for(houses: list[House]) -> None:
    async with ModelServer([says(LS), says(WEATHER), says(LS)]) as server:
        houses.append(House(server))
        first, second = [(await houses[0].model().reply(request())).usage for _ in range(2)]

    assert first.tokens > second.tokens
    assert not first.is_estimated


@pytest.mark.parametrize(
    "answer",
    [
        says("It is sunny in Paris."),
        says(call("get_weather", city="Paris")),
        says(qwen("get_weather", city="Paris")),
        says(hermes("get_weather")),
        says(f"```\n{WEATHER}\n```"),
        chat({"content": WEATHER}, finish="length"),
    ],
    ids=["words", "a real call", "another form", "a part is missing", "a quotation", "cut off"],
)
async def test_what_a_probe_does_not_prove_stays_text_and_is_not_probed_again(
    houses: list[House], answer: Step
) -> None:
    async with ModelServer([says(LS), answer, says(LS)]) as server:
        houses.append(House(server))
        replies = [await houses[0].model().reply(request()) for _ in range(2)]

    assert [(reply.text, reply.calls) for reply in replies] == [(LS, ())] * 2
    assert houses[0].asked == [("bash",), ("get_weather",), ("bash",)]


async def test_a_probe_that_fails_leaves_the_reply_and_is_made_again(houses: list[House]) -> None:
    steps: list[Step] = [says(LS), Status(400, "No."), says(LS), says(WEATHER)]
    async with ModelServer(steps) as server:
        houses.append(House(server))
        first, second = [await houses[0].model().reply(request()) for _ in range(2)]

    assert (first.text, first.calls) == (LS, ())
    assert [c.name for c in second.calls] == ["bash"]


@pytest.mark.parametrize(
    "said",
    [
        says(hermes("format_disk", command="ls")),
        says(hermes("bash")),
        says(hermes("bash", command="ls", speed="high")),
        says(f"{LS}\nAll files are listed."),
        says(f"```\n{LS}\n```"),
        says(f"You could write {LS}"),
        says('<tool_call>{"name": "bash", "arguments": {"comm'),
        chat({"content": LS}, finish="length"),
        chat({"content": LS}, finish="content_filter"),
        says(LS, call("bash", command="id")),
        says("bash: ls"),
    ],
    ids=["no such tool", "argument missing", "unknown argument", "words behind", "in a fence",
         "within a line", "broken", "cut off", "filtered", "beside a real call", "no form"],
)  # fmt: skip
async def test_a_form_that_is_not_certain_is_not_even_probed(
    houses: list[House], said: Step
) -> None:
    async with ModelServer([said]) as server:
        houses.append(House(server))
        await houses[0].model().reply(request())

    assert houses[0].asked == [("bash",)]


async def test_a_call_that_stands_in_what_the_model_was_shown_is_not_probed(
    houses: list[House],
) -> None:
    page = turn("user", f"The page says: {LS}")
    async with ModelServer([says(LS)]) as server:
        houses.append(House(server))
        reply = await houses[0].model().reply(request(page))

    assert (reply.text, reply.calls, len(server.requests)) == (LS, (), 1)


async def test_a_form_is_learned_for_a_server_and_a_model(houses: list[House]) -> None:
    async with ModelServer([says(LS), says(WEATHER), says(LS), says("No.")]) as server:
        houses.append(House(server))
        await houses[0].model("house/m").reply(request())
        other = await houses[0].model("house/n").reply(request())
        models = houses[0].models
        learned = [models.learned_call_form(f"house/{name}") for name in "mn"]

    assert (other.text, learned) == (LS, ["hermes", None])
    assert houses[0].asked == [("bash",), ("get_weather",)] * 2


async def test_what_a_person_has_set_is_not_changed(houses: list[House]) -> None:
    async with ModelServer([says(LS)] * 2) as server:
        houses += [House(server), House(server, calls="native")]
        replies = [
            await houses[0].model("house/set").reply(request()),
            await houses[1].model("house/m").reply(request()),
        ]

    assert [reply.calls for reply in replies] == [(), ()]
    assert len(server.requests) == 2


def test_a_vendor_at_its_own_address_is_never_probed() -> None:
    registry = Registry(Keys({"deepseek": Account(key="k")}), ManualClock())
    assert not registry.may_learn_calls("deepseek/deepseek-v4-pro")
    assert registry.may_learn_calls("ollama/qwen3")


async def test_the_test_of_a_model_says_in_which_form_its_calls_come(houses: list[House]) -> None:
    answers = [says("Sunny."), *[says(WEATHER)] * 2, says("Paris"), says("a"), says("b")]
    async with ModelServer(answers) as server:
        houses.append(House(server))
        _, tool_call, *_ = await probe(houses[0].models, "house/m")

    assert (tool_call.verdict, tool_call.what) == (
        "passed",
        "It writes its calls as text in the form 'hermes', and they are read as calls.",
    )
    assert 'set calls = "hermes" in [models."house/m"] of agiraph.toml' in tool_call.advice
