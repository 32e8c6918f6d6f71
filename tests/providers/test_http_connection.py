"""HTTP connections: kept and reused, never mixed up, and closed on cancellation."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agiraph.core.domain.errors import ContextExceeded, ModelUnavailable
from agiraph.models.http.client import HttpClient
from agiraph.models.http.connection import (
    MAX_BUFFERED_BYTES,
    SEND_CHUNK_BYTES,
    ConnectionFailed,
    ConnectionPool,
    HttpConnection,
    parse_url,
)
from agiraph.models.http.patience import REMOTE
from agiraph.testing import ManualClock
from tests.providers.raw_server import Caller, RawServer, answer, echo, post, until

MEBIBYTE = 2**20
MANY = 200


@pytest.fixture
async def http(clock: ManualClock) -> AsyncIterator[HttpClient]:
    opened = HttpClient(clock, stall_timeout_s=20)
    yield opened
    await opened.close()


def idle(http: HttpClient, server: RawServer) -> list[HttpConnection]:
    """Return the idle connections that can be used again."""
    return [line for line in http._pool._idle[parse_url(server.url)[0]] if line.is_reusable]


# ---- one after the other ---------------------------------------------------------------------


async def test_a_connection_is_used_again(http: HttpClient) -> None:
    async with RawServer(echo).open() as server:
        said = [await post(http, server, (b"%d" % number,)) for number in range(5)]

    assert said == [b"%d on 1" % number for number in range(5)]


async def test_a_connection_with_connection_close_is_not_used_again(http: HttpClient) -> None:
    async def once(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(answer(b"bye", b"connection: close"))
        await caller.wait_until_closed()

    async with RawServer(once).open() as server:
        assert [await post(http, server) for _ in range(3)] == [b"bye"] * 3

    assert server.connections == 3


async def test_an_idle_connection_that_the_server_closed_is_replaced(http: HttpClient) -> None:
    async def once(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(answer(b"for now"))

    async with RawServer(once).open() as server:
        said: list[bytes] = []
        for _ in range(3):
            said.append(await post(http, server))
            await until(lambda: not any(line.is_reusable for line in idle(http, server)))

    assert (said, server.connections) == ([b"for now"] * 3, 3)


async def test_a_response_that_is_not_read_to_its_end_leaves_a_reusable_connection(
    http: HttpClient,
) -> None:
    """The handler returns early, and the last bytes of the response are still read."""
    gate = asyncio.Event()

    async def slow_end(caller: Caller) -> None:
        while await caller.read_request():
            await caller.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nall\r\n")
            await gate.wait()
            await caller.send(b"0\r\n\r\n")

    async with RawServer(slow_end).open() as server:
        for _ in range(2):
            gate.clear()
            said = await http.post(
                server.url, headers={}, body=(b"{}",), handle=lambda response: response.read_chunk()
            )
            assert said == b"all"
            gate.set()
            await until(lambda: bool(idle(http, server)))

    assert server.connections == 1


async def test_bytes_after_a_response_are_not_read_as_the_next_response(http: HttpClient) -> None:
    async def chatter(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(answer(b"one") + answer(b"unasked"))
        await echo(caller)

    async with RawServer(chatter).open() as server:
        assert await post(http, server) == b"one"
        second = await post(http, server, (b"two",))

    assert second in (b"two on 1", b"one")  # on the same connection, or on a new one
    assert b"unasked" not in second


# ---- forms of responses ----------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"
FORMS = {
    "with its length": answer(b"hello"),
    "chunked": HEAD + CHUNKED + b"\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    "chunked, with an extension and a trailer": HEAD + b"Transfer-Encoding: Chunked\r\n\r\n"
    b"00002;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nx-trailer: 1\r\n\r\n",
    "until the connection closes": HEAD + b"\r\nhello",
    "until the connection closes, HTTP/1.0": b"HTTP/1.0 200 OK\r\nserver: old\r\n\r\nhello",
    "after an interim response": b"HTTP/1.1 100 Continue\r\nx-hint: 1\r\n\r\n" + answer(b"hello"),
    "after two interim responses": b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    b"HTTP/1.1 100 Continue\r\n\r\n" + answer(b"hello"),
}


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
async def test_a_response_is_read_in_every_encoding(
    http: HttpClient, form: bytes, torn: bool
) -> None:
    async def say(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(*([form[n : n + 1] for n in range(len(form))] if torn else [form]))

    async with RawServer(say).open() as server:
        assert await post(http, server) == b"hello"


BROKEN = {
    "before it begins": b"",
    "in its head": b"HTTP/1.1 200 OK\r\ncontent-le",
    "in its length": HEAD + b"content-length: 9\r\n\r\nhello",
    "in its chunks": HEAD + CHUNKED + b"\r\n5\r\nhel",
    "between its chunks": HEAD + CHUNKED + b"\r\n5\r\nhello\r\n",
    "only an interim response": b"HTTP/1.1 100 Continue\r\n\r\n",
    "not HTTP": b"220 mail.example ESMTP\r\n",
    "with a wrong chunk": HEAD + CHUNKED + b"\r\nxyz\r\nhello\r\n",
    "with too many headers": HEAD + b"".join(b"x-%d: %b\r\n" % (n, b"y" * 999) for n in range(99)),
}


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN.keys())
async def test_a_broken_response_raises_model_unavailable(http: HttpClient, said: bytes) -> None:
    async def say(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(said)

    async with RawServer(say).open() as server:
        with pytest.raises(ModelUnavailable, match=r"^Cannot reach 127\.0\.0\.1:\d+: "):
            await post(http, server)


# ---- large bodies ----------------------------------------------------------------------------


async def test_a_long_request_is_sent_in_chunks_while_other_tasks_run() -> None:
    """A slow server makes the sender wait instead of filling a buffer."""
    heard: list[bytes] = []

    async def slowly(caller: Caller) -> None:
        heard.append(await caller.read_request(chunk_bytes=4096))
        await caller.send(answer(b"read"))

    body = (b"a" * 3, bytearray(b"b" * (6 * MEBIBYTE + 1)), b"c" * MEBIBYTE)
    pool = ConnectionPool()
    async with RawServer(slowly).open() as server:
        host, path, _ = parse_url(server.url)
        connection = await pool.acquire(host)
        length = sum(len(piece) for piece in body)
        head = f"POST {path} HTTP/1.1\r\ncontent-length: {length}\r\n\r\n".encode()
        asking = asyncio.create_task(connection.send_request(head, body, REMOTE))
        waiting: list[int] = []
        while not asking.done():
            waiting.append(connection._transport.get_write_buffer_size())
            await asyncio.sleep(0)
        await asking
        pool.release(host, connection, is_answered=True)
        await pool.close()

    assert heard == [b"".join(body)]
    assert max(waiting) <= 4 * SEND_CHUNK_BYTES
    assert len(waiting) > length // (8 * SEND_CHUNK_BYTES)  # how often other tasks ran


async def test_a_long_response_is_buffered_only_up_to_the_limit() -> None:
    piece = b"x" * 65_536

    async def gush(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(HEAD + CHUNKED + b"\r\n")
        await caller.send(*[b"10000\r\n" + piece + b"\r\n"] * 256, b"0\r\n\r\n")
        await caller.wait_until_closed()

    pool = ConnectionPool()
    async with RawServer(gush).open() as server:
        host, path, _ = parse_url(server.url)
        connection = await pool.acquire(host)
        await connection.send_request(
            f"POST {path} HTTP/1.1\r\ncontent-length: 2\r\n\r\n".encode(), (b"{}",), REMOTE
        )
        most = total = 0
        while chunk := await connection.read_chunk():
            total += len(chunk)
            for _ in range(20):  # the reader is slow
                await asyncio.sleep(0)
                most = max(most, connection._unread_bytes)
        reusable = connection.is_reusable
        pool.release(host, connection, is_answered=True)
        await pool.close()

    assert (total, reusable) == (256 * 65_536, True)
    assert most <= MAX_BUFFERED_BYTES + 4 * 65_536


async def test_a_response_before_the_end_of_the_request_is_read(http: HttpClient) -> None:
    async def impatient(caller: Caller) -> None:
        await caller.reader.readuntil(b"\r\n\r\n")
        await caller.send(answer(b"Too much.", status=b"413 Payload Too Large"))
        await asyncio.get_running_loop().create_future()  # it never reads the rest

    async with RawServer(impatient).open() as server:
        with pytest.raises(ContextExceeded, match="answered 413: Too much"):
            await post(http, server, (b"x" * 32 * MEBIBYTE,))
        with pytest.raises(ContextExceeded):
            await post(http, server, (b"x" * 32 * MEBIBYTE,))

    assert server.connections == 2  # the first has half a request on it


async def test_two_hundred_concurrent_requests_get_their_own_responses(http: HttpClient) -> None:
    waiting = 0
    everybody = asyncio.Event()

    async def together(caller: Caller) -> None:
        nonlocal waiting
        while body := await caller.read_request():
            waiting += 1
            if waiting == MANY:
                everybody.set()
            await everybody.wait()
            await caller.send(answer(body))

    async with RawServer(together).open() as server:
        for _ in range(2):
            waiting = 0
            everybody.clear()
            bodies = [b"%d" % number for number in range(MANY)]
            said = await asyncio.gather(*(post(http, server, (body,)) for body in bodies))
            assert said == bodies

    assert server.connections == MANY


# ---- cancellation and timeouts ---------------------------------------------------------------


@pytest.mark.parametrize(
    "said", [b"", HEAD, HEAD + CHUNKED + b"\r\n5\r\nhello\r\n"], ids=["asked", "head", "body"]
)
async def test_a_cancelled_request_closes_its_connection_at_once(
    http: HttpClient, said: bytes
) -> None:
    gone, told = asyncio.Event(), asyncio.Event()

    async def go_on(caller: Caller) -> None:
        await caller.read_request()
        await caller.send(said)
        told.set()
        await caller.wait_until_closed()
        gone.set()

    async with RawServer(go_on).open() as server:
        asking = asyncio.create_task(post(http, server))
        await told.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await gone.wait()
        assert idle(http, server) == []


async def test_a_request_cancelled_while_it_is_sent_closes_its_connection_at_once(
    http: HttpClient,
) -> None:
    gone = asyncio.Event()

    async def deaf(caller: Caller) -> None:
        await caller.reader.readuntil(b"\r\n\r\n")
        asking.cancel()
        await caller.wait_until_closed()
        gone.set()

    async with RawServer(deaf).open() as server:
        asking = asyncio.create_task(post(http, server, (b"x" * 64 * MEBIBYTE,)))
        with pytest.raises(asyncio.CancelledError):
            await asking
        await gone.wait()


async def test_a_silent_server_raises_model_unavailable(clock: ManualClock) -> None:
    async def silent(caller: Caller) -> None:
        await caller.wait_until_closed()

    impatient = HttpClient(clock, stall_timeout_s=0.05)
    async with RawServer(silent).open() as server:
        with pytest.raises(ModelUnavailable, match=r"no data arrived for 0\.05 s\."):
            await post(impatient, server)
        with pytest.raises(ModelUnavailable, match=r"no data arrived for 0\.05 s\."):
            await post(impatient, server, (b"x" * 32 * MEBIBYTE,))
    await impatient.close()


async def test_a_failed_connection_names_the_error() -> None:
    pool = ConnectionPool()
    with pytest.raises(ConnectionFailed, match=r"^the connection was refused$"):
        await pool.acquire(parse_url("http://127.0.0.1:1/")[0])


async def test_an_unknown_host_is_named_in_words_without_the_number_of_the_error() -> None:
    pool = ConnectionPool()
    with pytest.raises(ConnectionFailed, match=r"^[^\[\]]+$"):
        await pool.acquire(parse_url("http://nowhere.invalid/")[0])
