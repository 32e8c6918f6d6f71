"""Fixtures of the providers' tests: an HTTP client, a model on a scripted server, a certificate."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from agiraph.models.http import connection as http_connection
from agiraph.models.http.client import HttpClient
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.testing import ManualClock, ModelServer
from tests.certificates import self_signed

KEY = "sk-canary-4711"
HOST = "models.example"
"""A name that only a proxy can resolve: a call that bypasses the proxy cannot succeed."""


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


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a self-signed certificate for 127.0.0.1 and `HOST`, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"), HOST)


@pytest.fixture
def server_tls(certificate: Path) -> Iterator[ssl.SSLContext]:
    """A server's context. The trusted certificates, which a process reads once, are read again."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    http_connection.trusted_certificates.cache_clear()
    yield context
    http_connection.trusted_certificates.cache_clear()
