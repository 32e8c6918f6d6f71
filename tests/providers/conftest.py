"""What tests of models share: a client that is closed, and a model on a scripted server."""

from collections.abc import AsyncIterator, Callable

import pytest

from agiraph.providers.http import Http
from agiraph.providers.openai import OpenAIModel
from agiraph.testing import ManualClock, ModelServer

KEY = "sk-canary-4711"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def http(clock: ManualClock) -> AsyncIterator[Http]:
    opened = Http(clock, stall_seconds=0.2)
    yield opened
    await opened.close()


@pytest.fixture
def model_on(http: Http) -> Callable[[ModelServer], OpenAIModel]:
    """The model that a server plays."""

    def make(server: ModelServer) -> OpenAIModel:
        return OpenAIModel(
            name="openai/test", model="test", base_url=server.openai_url, key=KEY, http=http
        )

    return make
