"""Fixtures of the providers' tests: an HTTP client, and a model on a scripted server."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import uvloop

from agiraph.providers.http.client import HttpClient
from agiraph.providers.wires.chat_completions import OpenAIModel
from agiraph.testing import ManualClock, ModelServer

KEY = "sk-canary-4711"


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run connection tests on uvloop, which commands use, and on asyncio's own loop."""
    own = {"asyncio": asyncio.new_event_loop}
    return own | {"uvloop": uvloop.new_event_loop} if "test_http_" in item.path.name else own


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def http(clock: ManualClock) -> AsyncIterator[HttpClient]:
    opened = HttpClient(clock, stall_timeout_s=0.2)
    yield opened
    await opened.close()


@pytest.fixture
def model_on(http: HttpClient) -> Callable[[ModelServer], OpenAIModel]:
    """Return a function that makes the model of a scripted server."""

    def make(server: ModelServer) -> OpenAIModel:
        return OpenAIModel(
            name="openai/test", model="test", base_url=server.openai_url, key=KEY, http=http
        )

    return make
