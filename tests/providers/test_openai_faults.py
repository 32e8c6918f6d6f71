"""OpenAI wire, failures: the error says what went wrong, whether to retry, and never the key."""

import traceback
from collections.abc import Callable

import pytest

from agiraph.core.domain.errors import ModelError, ModelGarbled, ModelRefused, ModelUnavailable
from agiraph.models.base import Reply
from agiraph.models.http.client import HttpClient
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.testing import Call, ModelServer, says
from agiraph.testing.model_server import (
    Cut,
    Delay,
    Empty,
    Garbage,
    Seen,
    Stall,
    Status,
    Step,
    StreamError,
)
from agiraph.testing.model_server.openai import OpenAI
from tests.providers.conftest import KEY
from tests.providers.transcripts import declined, request
from tests.wording import Wording

ModelOn = Callable[[ModelServer], OpenAIModel]
CUT_OFF = "The response was cut off"


async def failure(model_on: ModelOn, step: Step) -> ModelError:
    async with ModelServer([step]) as server:
        with pytest.raises(ModelError) as caught:
            await model_on(server).reply(request())
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
async def test_a_stream_cut_at_any_byte_gives_the_whole_reply_or_an_error(
    model_on: ModelOn, step: int
) -> None:
    said = says("Grüße", Call("bash", {"command": "ls"}, id="a"), chunk=100)
    length = 0

    def count(seen: Seen) -> Step:
        nonlocal length
        length = sum(len(event) for event in OpenAI().events(seen, said))
        return said

    async with ModelServer(count) as server:
        whole = await model_on(server).reply(request())

    outcomes: list[Reply | str] = []
    cuts = [*range(0, length - 1, step), length - 1, length]
    async with ModelServer(lambda seen: Cut(cuts[seen.index], said)) as server:
        host = server.url.removeprefix("http://")
        model = model_on(server)
        for _ in cuts:
            heard: list[str] = []
            try:
                outcomes.append(await model.reply(request(), heard.append))
            except ModelUnavailable as error:
                outcomes.append(str(error))
            assert "Grüße".startswith("".join(heard))

    broken = f"Cannot reach {host}: the connection was closed before the end of the response."
    assert outcomes == [*[broken] * (len(cuts) - 2), whole, whole]


async def test_a_connection_closed_before_the_response_may_be_retried(
    model_on: ModelOn,
) -> None:
    async with ModelServer([Cut(None)]) as server:
        host = server.url.removeprefix("http://")
        with pytest.raises(
            ModelUnavailable,
            match=f"Cannot reach {host}: the connection was closed before the end of the response",
        ):
            await model_on(server).reply(request())


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


MALFORMED = [
    b"data: {nope}\n\n",
    b"data: [1]\n\n",
    b'data: {"choices": 5}\n\n',
    b'data: {"choices": [5]}\n\n',
    b'data: {"choices": [{"delta": {"content": 5}}]}\n\n',
    b'data: {"choices": [{"delta": {"content": [{"text": 5}]}}]}\n\n',
    b'data: {"choices": [{"delta": {"tool_calls": [{"id": 5}]}}]}\n\n',
    b'data: {"choices": [{"delta": {"tool_calls": [{"id": "a"}]}}]}\n\ndata: [DONE]\n\n',
    b"data: [DONE]\n\n",
]


async def test_a_malformed_stream_raises_model_garbled(model_on: ModelOn, wording: Wording) -> None:
    errors = {str(data): await failure(model_on, Garbage(data)) for data in MALFORMED}
    assert all(isinstance(error, ModelGarbled) for error in errors.values())
    wording({data: str(error) for data, error in errors.items()})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {"content": 5}}]},
        {"choices": [{"message": {"tool_calls": [{"id": "a"}]}}]},
    ],
)
async def test_a_response_that_is_not_a_chat_completion_raises_model_garbled(
    model_on: ModelOn, body: dict[str, object]
) -> None:
    error = await failure(model_on, Status(200, body))

    assert isinstance(error, ModelGarbled)
    assert str(error).startswith("The response is not a chat completion: ")


@pytest.mark.parametrize("step", [Garbage(), Garbage(b""), Empty()])
async def test_a_stream_without_an_end_is_reported_as_cut_off(
    model_on: ModelOn, step: Step
) -> None:
    error = await failure(model_on, step)

    assert isinstance(error, ModelUnavailable)
    assert str(error) == f"{CUT_OFF} before its end."


async def test_a_filtered_reply_raises_model_refused(model_on: ModelOn) -> None:
    error = await failure(model_on, says("", finish="content_filter"))

    assert isinstance(error, ModelRefused)
    assert str(error) == declined("content_filter")


async def test_a_response_over_32_mib_is_refused(
    model_on: ModelOn,
) -> None:
    error = await failure(model_on, Garbage(b": " + b"x" * 33 * 2**20 + b"\n\n"))

    assert isinstance(error, ModelGarbled)
    assert str(error) == "The response is longer than 32 MiB."


@pytest.mark.parametrize("chunks", [0, 1, 3])
async def test_an_error_inside_the_stream_discards_the_reply(
    model_on: ModelOn, chunks: int
) -> None:
    error = await failure(model_on, StreamError(chunks))

    assert isinstance(error, ModelUnavailable)
    assert str(error) == "The response broke off: Overloaded"


async def test_an_error_with_status_200_is_an_error(model_on: ModelOn) -> None:
    error = await failure(model_on, Status(200, {"error": {"message": "Overloaded"}}))

    assert isinstance(error, ModelUnavailable)
    assert str(error) == "Overloaded"


@pytest.mark.parametrize(
    "step",
    [
        Status(401, f"Incorrect API key provided: {KEY}."),
        Status(500, f"<p>Bearer {KEY}</p>".encode()),
        Status(200, {"error": {"message": f"No credit on {KEY}"}}),
        Garbage(f'data: {{"error": "who is {KEY}?"}}\n\n'.encode()),
        Garbage(f"data: {KEY}\n\n".encode()),
    ],
)
async def test_a_key_in_an_error_of_the_server_is_redacted(model_on: ModelOn, step: Step) -> None:
    error = await failure(model_on, step)

    assert "[key]" in str(error)
    assert KEY not in "".join(traceback.format_exception(error))


async def test_the_key_is_not_in_the_repr_of_the_model(http: HttpClient) -> None:
    model = OpenAIModel(name="openai/m", model="m", base_url="http://x", key=KEY, http=http)

    assert KEY not in repr(model)
