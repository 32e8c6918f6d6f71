"""Connection pool with TLS: trusted and untrusted certificates."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.core.domain.errors import ModelRefused, ModelUnavailable
from agiraph.models.http.client import HttpClient
from agiraph.testing import ManualClock
from tests.providers.raw_server import Caller, RawServer, answer, echo, post

MEBIBYTE = 2**20


@pytest.fixture
async def http(clock: ManualClock) -> AsyncIterator[HttpClient]:
    opened = HttpClient(clock, stall_timeout_s=20)
    yield opened
    await opened.close()


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
