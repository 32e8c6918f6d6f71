"""Text replies: requests to text models and replies with tool calls written as text."""

import re
from collections.abc import Callable
from itertools import count

from agiraph.core.domain.chat import ToolSpec, Transcript
from agiraph.models.base import Model, Request
from agiraph.models.wires.text import TextToolModel, draw_key
from agiraph.testing import ScriptedModel, says
from agiraph.testing.scripted import Line
from tests.providers.transcripts import tool_call, turn

KEY = "k4tz9wqb"
SPEC = ToolSpec(name="read_file", description="Read.", schema={"type": "object"})
READ = '<call KEY read_file>\n{"path": "a.md"}\n</call>'
READING = tool_call("", "read_file", path="a.md")
ANNOUNCED = re.compile(r"The key for this reply is (\w+)\.")


def predictable_keys() -> Callable[[], str]:
    """Return a source of predictable keys: bbbbbbb2, bbbbbbb3 and so on."""
    numbers = count(2)
    return lambda: f"bbbbbbb{next(numbers)}"


def announced_key(text: str) -> str:
    """Return the key that a message announces."""
    found = ANNOUNCED.search(text)
    assert found is not None
    return found[1]


def writes_with_key(text: str) -> Line:
    """Return a reply in which KEY is replaced by the key of its request."""
    return lambda asked: says(text.replace("KEY", announced_key(asked.transcript.turns[-1].text)))


def finishes(summary: str) -> Line:
    """Return a reply that ends the work with this summary, with the key of its request."""
    arguments = f'{{"summary": "{summary}", "reached": "yes"}}'
    return writes_with_key(f"<call KEY finish>\n{arguments}\n</call>")


def text_model(*lines: Line, draw: Callable[[], str] = draw_key) -> TextToolModel:
    return TextToolModel(ScriptedModel("scripted/plain", list(lines)), draw=draw)


def last_request(model: TextToolModel) -> list[tuple[str, str]]:
    """Return the last request to the inner model, as pairs of role and text."""
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
    """Add one reply with a call, its intent and its answer to the transcript, as the loop does."""
    reply = await model.reply(Request(transcript=transcript, tools=(SPEC,)))
    calls = transcript.with_unique_ids(reply.calls)
    transcript.add(turn("assistant", reply.text, calls=calls, provider_data=reply.provider_data))
    transcript.add(turn("intent", "read_file", ref=calls[0].id))
    transcript.add(turn("tool", answer, ref=calls[0].id))
