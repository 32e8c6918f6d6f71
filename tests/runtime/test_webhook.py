"""A webhook calls only its own URL, and no error shows that URL."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest

from agiraph.core.domain.ids import MessageId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.records.channels import DeliveryFailed
from agiraph.core.domain.records.deliveries import Delivery, OutgoingMessage
from agiraph.features.channels.kinds.webhook import Webhook, signature
from tests.providers.raw_server import Caller, RawServer, answer

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
TOKEN = "canary-in-the-path"


def outgoing(text: str = "Hello.") -> OutgoingMessage:
    message = Message(
        id=MessageId("m_1"),
        team_id=TeamId("team_1"),
        seq=1,
        sender="a_1",
        recipient="human",
        kind="report",
        text=text,
        created_at=NOW,
    )
    delivery = Delivery(
        id="d_1",
        team_id=message.team_id,
        message_id=message.id,
        channel="hook",
        created_at=NOW,
        due_at=NOW,
    )
    return OutgoingMessage(
        delivery=delivery, message=message, team="Team", sender="Ada", claimed_at=NOW
    )


async def failure(talk: Callable[[Caller], Awaitable[None]], **more: float) -> DeliveryFailed:
    async with RawServer(talk).open() as server:
        hook = Webhook(url=f"{server.url}/{TOKEN}", timeout_s=more.get("timeout_s", 5.0))
        with pytest.raises(DeliveryFailed) as caught:
            await hook.send(outgoing())
    assert TOKEN not in str(caught.value) + repr(hook) + hook.description
    return caught.value


async def test_a_redirect_is_not_followed() -> None:
    calls: list[bytes] = []

    async def redirect(caller: Caller) -> None:
        calls.append(await caller.read_request())
        port = caller.writer.get_extra_info("sockname")[1]
        there = b"location: http://127.0.0.1:%d/elsewhere" % port
        await caller.send(answer(b"Moved.", there, status=b"307 Temporary Redirect"))

    error = await failure(redirect)

    assert (str(error), len(calls)) == ("answered 307: Moved.", 1)


async def test_the_error_for_a_response_that_is_not_http_omits_the_url() -> None:
    async def answer_without_http(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(b"220 mail.example ESMTP\r\n\r\n")

    assert str(await failure(answer_without_http)).startswith("the response is not HTTP (")


async def test_only_the_beginning_of_a_long_error_response_is_read() -> None:
    async def answer_without_end(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(b"HTTP/1.1 500 No\r\n\r\n")
        while True:
            await caller.send(b"x" * 65_536)

    assert str(await failure(answer_without_end)) == "answered 500: " + "x" * 300


async def test_a_server_that_never_ends_its_headers_runs_into_the_timeout() -> None:
    async def trickle(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(b"HTTP/1.1 200 OK\r\n")
        while True:
            await caller.send(b"x-a: b\r\n")
            await asyncio.sleep(0.01)

    assert str(await failure(trickle, timeout_s=0.2)) == "no answer within 0.2 s"


async def test_a_long_message_arrives_whole_and_signed() -> None:
    requests: list[tuple[bytes, bytes]] = []

    async def take(caller: Caller) -> None:
        head = await caller.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        requests.append((head.lower(), await caller.reader.readexactly(length)))
        await caller.send(answer(b""))

    async with RawServer(take).open() as server:
        await Webhook(url=server.url, secret="s" * 20).send(outgoing("x" * 3 * 2**20))

    [(head, body)] = requests
    stamp = str(int(NOW.timestamp()))
    assert f"agiraph-signature: {signature('s' * 20, stamp, body)}".encode() in head
    assert b"idempotency-key: d_1\r\n" in head
    assert b"cookie" not in head


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_proxy_variables_are_ignored(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def take(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(answer(b""))

    monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with RawServer(take).open() as server:
        await Webhook(url=server.url).send(outgoing())

    assert server.connections == 1
