"""OpenAI wire, failures: the error says what went wrong, whether to retry, and never the key."""

from collections.abc import Callable

import pytest

from agiraph.core.domain.errors import ModelError, ModelUnavailable
from agiraph.models.http.client import HttpClient
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.testing import ModelServer, says
from agiraph.testing.model_server import (
    Delay,
    Empty,
    Garbage,
    Stall,
    Status,
    Step,
    StreamError,
)
from tests.providers.conftest import KEY
from tests.providers.transcripts import request
from tests.wording import Wording

ModelOn = Callable[[ModelServer], OpenAIModel]
CUT_OFF = "The response was cut off"


async def failure(model_on: ModelOn, step: Step) -> ModelError:
    async with ModelServer([step]) as server:
        with pytest.raises(ModelError) as caught:
            await model_on(server).reply(request())
    return caught.value


@pytest.mark.parametrize("step", [Stall(0), Stall(300), Delay(60, says("Late."))])
async def test_a_server_that_stops_sending_raises_model_unavailable(
    model_on: ModelOn, step: Step
) -> None:
    async with ModelServer([step]) as server:
        host = server.url.removeprefix("http://")
        with pytest.raises(ModelUnavailable) as caught:
            await model_on(server).reply(request())

    first = "first_byte_s" if step != Stall(300) else "between_bytes_s"
    assert str(caught.value) == (
        f"Cannot reach {host}: no data arrived for 0.2 s. If this server needs longer, set {first} "
        "for it in agiraph.toml."
    )


def streamed(data: bytes) -> Garbage:
    return Garbage(b"data: " + data + b"\n\n")


FAULTS: dict[str, Step] = {
    "no JSON": streamed(b"{nope}"),
    "a list": streamed(b"[1]"),
    "choices that are none": streamed(b'{"choices": 5}'),
    "a choice that is none": streamed(b'{"choices": [5]}'),
    "a number as text": streamed(b'{"choices": [{"delta": {"content": 5}}]}'),
    "a number as a part": streamed(b'{"choices": [{"delta": {"content": [{"text": 5}]}}]}'),
    "a number as an id": streamed(b'{"choices": [{"delta": {"tool_calls": [{"id": 5}]}}]}'),
    "a call without a name": streamed(
        b'{"choices": [{"delta": {"tool_calls": [{"id": "a"}]}}]}\n\ndata: [DONE]'
    ),
    "an end without a reply": streamed(b"[DONE]"),
    "an empty object": Status(200, {}),
    "no choices": Status(200, {"choices": []}),
    "no message": Status(200, {"choices": [{"message": None}]}),
    "a number as content": Status(200, {"choices": [{"message": {"content": 5}}]}),
    "a nameless call": Status(200, {"choices": [{"message": {"tool_calls": [{"id": "a"}]}}]}),
    "a broken stream": Garbage(),
    "an empty stream": Garbage(b""),
    "nothing": Empty(),
    "more than memory": Garbage(b": " + b"x" * 33 * 2**20 + b"\n\n"),
    "overloaded at once": StreamError(0),
    "overloaded midway": StreamError(3),
    "overloaded with status 200": Status(200, {"error": {"message": "Overloaded"}}),
}


async def test_each_fault_is_told_with_its_kind(model_on: ModelOn, wording: Wording) -> None:
    """`tests/conformance` has what the kind of each fault means on every wire."""
    errors = {name: await failure(model_on, step) for name, step in FAULTS.items()}
    wording({name: f"{type(error).__name__}: {error}" for name, error in errors.items()})


async def test_the_key_is_not_in_the_repr_of_the_model(http: HttpClient) -> None:
    model = OpenAIModel(name="openai/m", model="m", base_url="http://x", key=KEY, http=http)

    assert KEY not in repr(model)
