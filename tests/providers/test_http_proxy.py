"""Model calls through the proxies of the environment, over real sockets."""

import base64
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.errors import Misconfigured, ModelError, ModelRefused, ModelUnavailable
from agiraph.models.attempts import Retrying
from agiraph.models.http.client import HttpClient
from agiraph.models.http.proxy import Proxies
from agiraph.models.registry import Account, Keys, Registry
from agiraph.redaction import redact
from agiraph.testing import ManualClock, ModelServer, says
from agiraph.testing.model_server import Status, Step, Trickle
from tests.providers.conftest import HOST
from tests.providers.proxy import ProxyServer
from tests.providers.raw_server import Caller, RawServer, answer, echo, whole_body
from tests.providers.transcripts import request

PASSWORD = "canary-of-the-proxy"
MEBIBYTE = 2**20


def port_of(url: str) -> int:
    return int(url.split(":")[2].split("/")[0])


def keys(proxy: ProxyServer, server: ModelServer, **environ: str) -> Keys:
    url = server.openai_url.replace("127.0.0.1", HOST)
    proxies = Proxies.read({"HTTP_PROXY": f"http://127.0.0.1:{proxy.port}", **environ})
    return Keys({"openai": Account(key="sk-test", base_url=url)}, proxies=proxies)


@pytest.fixture
async def opened(clock: ManualClock) -> AsyncIterator[list[HttpClient]]:
    clients: list[HttpClient] = []
    yield clients
    for client in clients:
        await client.close()


def client(clients: list[HttpClient], stall_timeout_s: float = 20, **environ: str) -> HttpClient:
    made = HttpClient(ManualClock(), proxies=Proxies.read(environ), stall_timeout_s=stall_timeout_s)
    clients.append(made)
    return made


async def error_of(http: HttpClient, url: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await http.post(url, headers={}, body=(b"{}",), handle=whole_body)
    return caught.value


# ---- through the proxy -----------------------------------------------------------------------


async def test_a_reply_is_streamed_through_a_forward_proxy() -> None:
    deltas: list[str] = []
    async with (
        ModelServer([says("Hello there.", chunk=3), says("Again.")]) as server,
        ProxyServer(port_of(server.url)).open() as proxy,
    ):
        registry = Registry(keys(proxy, server), ManualClock())
        model = registry.resolve("openai/m")
        replies = [await model.reply(request(), deltas.append), await model.reply(request())]
        await registry.close()

    assert [reply.text for reply in replies] == ["Hello there.", "Again."]
    assert "".join(deltas) == "Hello there."
    assert len(deltas) > 1
    line, headers = proxy.requests[0]
    assert line.startswith(f"POST http://{HOST}:")
    assert (headers["authorization"], headers["accept-encoding"]) == ("Bearer sk-test", "identity")
    assert "user-agent" not in headers


async def test_a_call_through_a_tunnel_is_hidden_from_the_proxy(
    opened: list[HttpClient],
    certificate: Path,
    server_tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    async with (
        RawServer(echo).open(server_tls) as server,
        ProxyServer(port_of(server.url)).open() as proxy,
    ):
        http = client(opened, https_proxy=f"http://ada:{PASSWORD}%21@127.0.0.1:{proxy.port}")
        url = server.url.replace("127.0.0.1", HOST)
        body = (b"x" * MEBIBYTE, bytearray(b"y" * MEBIBYTE))
        said = [
            await http.post(url, headers={"x-key": "k"}, body=body, handle=whole_body)
            for _ in range(2)
        ]

    assert said == [b"".join(body) + b" on 1"] * 2
    [(line, headers)] = proxy.requests  # one tunnel for both requests
    assert line == f"CONNECT {HOST}:{port_of(server.url)} HTTP/1.1"
    pair = base64.b64encode(f"ada:{PASSWORD}!".encode()).decode()
    assert headers["proxy-authorization"] == f"Basic {pair}"
    assert "x-key" not in headers


async def test_a_password_of_a_forward_proxy_does_not_reach_the_server(
    opened: list[HttpClient],
) -> None:
    heads: list[bytes] = []

    async def listen(caller: Caller) -> None:
        heads.append(await caller.reader.readuntil(b"\r\n\r\n"))
        await caller.send(answer(b"ok", b"connection: close"))

    async with RawServer(listen).open() as server, ProxyServer(port_of(server.url)).open() as proxy:
        http = client(opened, HTTP_PROXY=f"ada:{PASSWORD}@127.0.0.1:{proxy.port}")
        await http.post(
            server.url.replace("127.0.0.1", HOST), headers={}, body=(b"{}",), handle=whole_body
        )

    pair = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
    assert proxy.requests[0][1]["proxy-authorization"] == f"Basic {pair}"
    assert pair.encode() not in heads[0]


# ---- calls without the proxy -----------------------------------------------------------------


async def test_a_server_on_this_machine_is_called_directly() -> None:
    async with (
        ModelServer([says("Hello.")]) as server,
        ProxyServer(port_of(server.url), refusal=b"403 Forbidden").open() as proxy,
    ):
        proxies = Proxies.read({"HTTP_PROXY": f"http://127.0.0.1:{proxy.port}"})
        account = Account(base_url=server.openai_url)
        registry = Registry(Keys({"openai": account}, proxies=proxies), ManualClock())
        reply = await registry.resolve("openai/m").reply(request())
        await registry.close()

    assert (reply.text, proxy.requests) == ("Hello.", [])


async def test_a_host_of_no_proxy_is_called_directly(opened: list[HttpClient]) -> None:
    async with ProxyServer(1).open() as proxy:
        http = client(opened, HTTP_PROXY=f"http://127.0.0.1:{proxy.port}", NO_PROXY=f"a.b,{HOST}")
        error = await error_of(http, f"http://{HOST}/v1")

    # The name exists nowhere, so a direct call fails.
    assert isinstance(error, ModelUnavailable)
    assert (str(error).startswith(f"Cannot reach {HOST}: "), proxy.requests) == (True, [])


@pytest.mark.parametrize(
    ("url", "bypass", "is_proxied"),
    [
        ("https://api.openai.com/v1", "", True),
        ("https://api.openai.com/v1", "*", False),
        ("https://api.openai.com/v1", "openai.com", False),
        ("https://api.openai.com/v1", ".openai.com", False),
        ("https://api.openai.com/v1", "*.openai.com", False),
        ("https://api.openai.com/v1", "notopenai.com, penai.com", True),
        ("https://api.openai.com/v1", "API.OPENAI.COM:443", False),
        ("https://api.openai.com/v1", "api.openai.com:8443", True),
        ("https://10.1.2.3/v1", "10.0.0.0/8", False),
        ("https://10.1.2.3/v1", "10.1.2.4 192.168.0.0/16", True),
        ("https://10.1.2.3:8443/v1", "10.1.2.3", False),
        ("https://[fd00::1]/v1", "fd00::/8", False),
        ("https://[fd00::1]/v1", "fe80::/8", True),
        ("https://localhost:11434/v1", "", False),
        ("https://127.0.0.2:11434/v1", "", False),
        ("https://[::1]/v1", "", False),
        ("http://api.openai.com/v1", "", False),  # only HTTPS_PROXY is set
    ],
)
def test_which_hosts_are_called_through_the_proxy(url: str, bypass: str, is_proxied: bool) -> None:
    proxies = Proxies.read({"HTTPS_PROXY": "proxy.example:3128", "NO_PROXY": bypass})
    found = proxies.for_url(url)

    assert (None if found is None else found.url) == (
        "http://proxy.example:3128" if is_proxied else None
    )


def test_lower_case_variables_override_upper_case_ones() -> None:
    proxies = Proxies.read({"HTTPS_PROXY": "http://upper:1", "https_proxy": "http://lower:1"})
    found = proxies.for_url("https://api.openai.com/v1")

    assert found is not None
    assert found.url == "http://lower:1"


@pytest.mark.parametrize("setting", ["socks5://proxy:1080", "http://", "http://proxy:port"])
def test_a_proxy_that_is_not_http_is_refused(setting: str) -> None:
    proxies = Proxies.read({"HTTPS_PROXY": setting})

    with pytest.raises(Misconfigured, match=r"^HTTPS_PROXY must be the address of an HTTP proxy"):
        proxies.for_url("https://api.openai.com/v1")


# ---- failures --------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_wrong_proxy_password_is_reported_without_the_password(
    opened: list[HttpClient], scheme: str
) -> None:
    async with ProxyServer(1, refusal=b"407 Proxy Authentication Required").open() as proxy:
        setting = f"http://ada:{PASSWORD}@127.0.0.1:{proxy.port}"
        environ: dict[str, Any] = {f"{scheme}_proxy": setting}
        http = client(opened, **environ)
        error = await error_of(http, f"{scheme}://{HOST}/v1")

    assert isinstance(error, ModelRefused)
    assert error.unused
    assert str(error) == (
        f"Cannot reach {HOST}: the proxy http://127.0.0.1:{proxy.port} answered 407 Proxy "
        f"Authentication Required. Check {scheme.upper()}_PROXY, the proxy's user name and "
        "password in it, and whether the proxy allows this address; or add the host to NO_PROXY."
    )
    assert PASSWORD not in repr(http._proxies) + repr(error.__cause__)
    assert redact(f"said {PASSWORD}") == "said [hidden]"


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (b"403 Forbidden", ModelRefused),
        (b"429 Too Many Requests", ModelUnavailable),
        (b"502 Bad Gateway", ModelUnavailable),
    ],
)
async def test_a_refused_tunnel_is_temporary_or_permanent_by_its_status(
    opened: list[HttpClient], refusal: bytes, kind: type[ModelError]
) -> None:
    async with ProxyServer(1, refusal=refusal).open() as proxy:
        http = client(opened, HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}")
        error = await error_of(http, f"https://{HOST}/v1")

    assert (type(error), error.unused) == (kind, True)
    assert f"the proxy http://127.0.0.1:{proxy.port} answered {refusal.decode()}" in str(error)


async def test_an_unreachable_proxy_is_named_in_the_error(opened: list[HttpClient]) -> None:
    async with ProxyServer(1).open() as proxy:
        pass
    http = client(opened, HTTPS_PROXY=f"http://ada:{PASSWORD}@127.0.0.1:{proxy.port}")
    error = await error_of(http, f"https://{HOST}/v1")

    assert isinstance(error, ModelUnavailable)
    assert error.unused
    assert f"no connection to the proxy http://127.0.0.1:{proxy.port} (" in str(error)
    assert str(error).endswith("Check HTTPS_PROXY.")
    assert PASSWORD not in str(error)


async def test_a_silent_proxy_raises_model_unavailable(opened: list[HttpClient]) -> None:
    async with ProxyServer(1, silent=True).open() as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        http = client(opened, stall_timeout_s=0.1, HTTP_PROXY=url)
        error = await error_of(http, f"http://{HOST}/v1")

    assert isinstance(error, ModelUnavailable)
    assert (str(error), error.unused) == (
        f"Cannot reach {HOST}: no data arrived for 0.1 s. If this server needs longer, set "
        "first_byte_s for it in agiraph.toml.",
        False,
    )


async def test_a_certificate_in_a_tunnel_is_checked(
    opened: list[HttpClient], server_tls: ssl.SSLContext
) -> None:
    async with (
        RawServer(echo).open(server_tls) as server,
        ProxyServer(port_of(server.url)).open() as proxy,
    ):
        http = client(opened, HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}")
        error = await error_of(http, server.url.replace("127.0.0.1", HOST))

    assert isinstance(error, ModelRefused)
    assert "is not trusted (self-signed certificate)" in str(error)


async def test_a_response_that_is_cut_off_is_unavailable(opened: list[HttpClient]) -> None:
    async def cut(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")

    async with RawServer(cut).open() as server, ProxyServer(port_of(server.url)).open() as proxy:
        http = client(opened, HTTP_PROXY=f"http://127.0.0.1:{proxy.port}")
        error = await error_of(http, server.url.replace("127.0.0.1", HOST))

    assert isinstance(error, ModelUnavailable)
    assert not error.unused
    assert "the connection was closed before the end of the response" in str(error)


@pytest.mark.parametrize(
    ("step", "retry_after"),
    [
        (Status(429, "Slow down.", {"retry-after": "7"}), 7.0),
        (Trickle(20, Status(500, "No.")), None),
    ],
)
async def test_errors_of_the_server_are_the_same_as_without_a_proxy(
    step: Step, retry_after: float | None
) -> None:
    async with (
        ModelServer([step, says("Hello.")]) as server,
        ProxyServer(port_of(server.url)).open() as proxy,
    ):
        clock = ManualClock()
        registry = Registry(keys(proxy, server), clock)
        model = registry.resolve("openai/m")
        with pytest.raises(ModelUnavailable) as caught:
            await model.reply(request())
        reply = await Retrying(model=model, clock=clock).reply(request())
        await registry.close()

    assert caught.value.retry_after == retry_after
    assert reply.text == "Hello."


async def test_redirects_are_not_followed(opened: list[HttpClient]) -> None:
    async def point_away(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(answer(b"", b"location: http://elsewhere/", status=b"307 Moved"))

    async with (
        RawServer(point_away).open() as server,
        ProxyServer(port_of(server.url)).open() as proxy,
    ):
        http = client(opened, HTTP_PROXY=f"http://127.0.0.1:{proxy.port}")
        error = await error_of(http, server.url.replace("127.0.0.1", HOST))

    assert isinstance(error, ModelRefused)
    assert [line for line, _ in proxy.requests if "elsewhere" in line] == []


@pytest.mark.parametrize("key", ["a\r\nx-injected: yes", "a\0"])
async def test_a_key_with_a_line_break_cannot_add_headers(
    opened: list[HttpClient], key: str
) -> None:
    async with ProxyServer(1).open() as proxy:
        http = client(opened, HTTP_PROXY=f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(Misconfigured, match="contains a line break"):
            await http.post(
                f"http://{HOST}/v1", headers={"x-key": key}, body=(b"{}",), handle=whole_body
            )

    assert proxy.requests == []
