"""Connection pool with TLS: trusted and untrusted certificates."""

import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agiraph.domain.errors import ModelRefused, ModelUnavailable
from agiraph.providers.http import connection as http_connection
from agiraph.providers.http.client import HttpClient
from agiraph.testing import ManualClock
from tests.providers.raw_server import Caller, RawServer, answer, echo, post

MEBIBYTE = 2**20


@pytest.fixture
async def http(clock: ManualClock) -> AsyncIterator[HttpClient]:
    opened = HttpClient(clock, stall_timeout_s=20)
    yield opened
    await opened.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a self-signed certificate for 127.0.0.1 and its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        " -subj /CN=agiraph-test -addext subjectAltName=IP:127.0.0.1"
        " -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return context


@pytest.fixture(autouse=True)
def read_certificates_again() -> Iterator[None]:
    """Clear the cache of trusted certificates: a process reads them once, here each test does."""
    http_connection.trusted_certificates.cache_clear()
    yield
    http_connection.trusted_certificates.cache_clear()


async def test_a_server_with_a_trusted_certificate_is_called_over_tls(
    http: HttpClient,
    certificate: Path,
    server_tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    async with RawServer(echo).open(server_tls) as server:
        said = [await post(http, server, (b"x" * MEBIBYTE,)) for _ in range(2)]

    assert said == [b"x" * MEBIBYTE + b" on 1"] * 2


async def test_a_server_with_an_untrusted_certificate_gets_no_request(
    http: HttpClient, server_tls: ssl.SSLContext
) -> None:
    heard: list[bytes] = []

    async def listen(caller: Caller) -> None:
        heard.append(await caller.read_request())

    async with RawServer(listen).open(server_tls) as server:
        with pytest.raises(ModelRefused) as caught:
            await post(http, server)

    host = server.url.removeprefix("https://").removesuffix("/v1")
    assert str(caught.value) == (
        f"The certificate of {host} is not trusted (self-signed certificate). If the server is "
        "your own, set SSL_CERT_FILE to a file with its certificate."
    )
    assert b"".join(heard) == b""


async def test_a_server_without_tls_may_be_retried(http: HttpClient) -> None:
    async def plain(caller: Caller) -> None:
        await caller.reader.read(1)
        await caller.send(answer(b"in the open"))

    async with RawServer(plain).open() as server:
        server.url = server.url.replace("http://", "https://")
        with pytest.raises(ModelUnavailable, match="Cannot reach"):
            await post(http, server)
