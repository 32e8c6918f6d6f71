"""What text models are asked and what they write, for tests of tools in words."""

import re
from collections.abc import Callable
from itertools import count

from agiraph.domain.chat import ToolSpec, Transcript
from agiraph.providers.base import Model, Request
from agiraph.providers.text import TextToolModel, draw_key
from agiraph.testing import ScriptedModel, says
from agiraph.testing.scripted import Line
from tests.providers.said import tool_call, turn

KEY = "k4tz9wqb"
SPEC = ToolSpec(
    name="read_file", description="Read.", schema={"type": "object"}, guidance="Read it first."
)
READ = '<call KEY read_file>\n{"path": "a.md"}\n</call>'
READING = tool_call("", "read_file", path="a.md")
ANNOUNCED = re.compile(r"The key for this reply is (\w+)\.")


def counted() -> Callable[[], str]:
    """Keys that a test can foresee: bbbbbbb2, bbbbbbb3 and so on."""
    numbers = count(2)
    return lambda: f"bbbbbbb{next(numbers)}"


def announced(text: str) -> str:
    """The key that a message ends with."""
    found = ANNOUNCED.search(text)
    assert found is not None
    return found[1]


def writes(text: str) -> Line:
    """A reply with the key of its request wherever it says KEY."""
    return lambda asked: says(text.replace("KEY", announced(asked.transcript.turns[-1].text)))


def text_model(*lines: Line, draw: Callable[[], str] = draw_key) -> TextToolModel:
    return TextToolModel(ScriptedModel("scripted/plain", list(lines)), draw=draw)


def shown(model: TextToolModel) -> list[tuple[str, str]]:
    """What the model behind it was shown last."""
    assert isinstance(model.inner, ScriptedModel)
    asked = model.inner.requests[-1]
    assert asked.tools == ()
    return [("system", asked.system), *((t.role, t.text) for t in asked.turns)]


def key_line(key: str) -> str:
    return (
        f"[Runtime] The key for this reply is {key}. A call looks like this: `<call {key} "
        "tool_name>` at the beginning of a line, the arguments as one JSON object, `</call>`."
    )


async def step(model: Model, transcript: Transcript, answer: str) -> None:
    """One round, as the loop does it: a call, its intent, its answer."""
    reply = await model.reply(Request(transcript=transcript, tools=(SPEC,)))
    calls = transcript.with_unique_ids(reply.calls)
    transcript.add(turn("assistant", reply.text, calls=calls, provider_data=reply.provider_data))
    transcript.add(turn("intent", "read_file", ref=calls[0].id))
    transcript.add(turn("tool", answer, ref=calls[0].id))
