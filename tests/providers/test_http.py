"""An answer that is no answer: which errors may pass, for how long, and where nothing is sent."""

import asyncio
from datetime import timedelta
from email.utils import format_datetime

import pytest

from agiraph.domain.errors import (
    ContextExceeded,
    Misconfigured,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from agiraph.providers.http import HttpClient, Response, error_text
from agiraph.testing import ManualClock, ModelServer
from agiraph.testing.model_server import Status, Step, Trickle, context_overflow


async def ask(http: HttpClient, server: ModelServer) -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "Hello."}]}'
    await http.post(
        f"{server.openai_url}/chat/completions", headers={}, body=(body,), handle=answered
    )


async def answered(response: Response) -> None:
    raise AssertionError("it was answered")


async def refusal(http: HttpClient, step: Step) -> ModelError:
    async with ModelServer([step]) as server:
        with pytest.raises(ModelError) as caught:
            await ask(http, server)
        # Two servers never have the same address; what they say may be compared all the same.
        host = server.url.removeprefix("http://")
        caught.value.args = (str(caught.value).replace(host, "host"),)
    return caught.value


@pytest.mark.parametrize("code", [408, 409, 425, 429, 500, 502, 503, 504, 529])
async def test_what_may_pass_by_itself_is_unavailable(http: HttpClient, code: int) -> None:
    error = await refusal(http, Status(code, "Not now."))

    assert isinstance(error, ModelUnavailable)
    assert (str(error), error.retry_after) == (f"host answered {code}: Not now.", None)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (301, ""),
        (400, ""),
        (401, " Check the key of this provider."),
        (402, ""),
        (403, " Check the key of this provider."),
        (404, " Check the model's name and the provider's address."),
        (422, ""),
    ],
)
async def test_what_will_not_pass_is_refused_with_what_to_check(
    http: HttpClient, code: int, advice: str
) -> None:
    error = await refusal(http, Status(code, "No."))

    assert isinstance(error, ModelRefused)
    assert str(error) == f"host answered {code}: No.{advice}"


@pytest.mark.parametrize(
    "step",
    [
        context_overflow(),
        Status(413, "Payload too large."),
        Status(400, "The request exceeds the context window of 8192 tokens."),
        Trickle(20, context_overflow()),
    ],
)
async def test_a_thread_that_no_longer_fits_is_told_apart(http: HttpClient, step: Step) -> None:
    assert isinstance(await refusal(http, step), ContextExceeded)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.25", 0.25),
        ("0", 0.0),
        ("-5", 0.0),
        ("nan", 0.0),
        ("inf", 86400.0),
        ("1e300", 86400.0),
        ("soon", None),
        ("", None),
        ("Wed, 99 Oct 2026 07:28:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86400.0),
        ("Mon, 05 Jan 2026 08:00:00 GMT", 0.0),
        ("Mon, 05 Jan 2026 09:01:30 GMT", 90.0),
        ("Mon, 05 Jan 2026 09:01:30 -0000", 90.0),
        ("Mon, 05 Jan 2026 10:01:30 +0100", 90.0),
    ],
)
async def test_how_long_to_wait_is_understood_in_every_form(
    http: HttpClient, value: str, seconds: float | None
) -> None:
    error = await refusal(http, Status(429, "Slow down.", {"retry-after": value}))

    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == seconds


async def test_a_date_to_wait_for_is_measured_on_the_clock(
    http: HttpClient, clock: ManualClock
) -> None:
    clock.advance(hours=5)
    date = format_datetime(clock.now() + timedelta(seconds=40), usegmt=True)
    error = await refusal(http, Status(503, "Later.", {"retry-after": date}))

    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == 40.0


async def test_nothing_is_sent_to_where_a_server_points(http: HttpClient) -> None:
    async with ModelServer([]) as elsewhere:
        there = f"{elsewhere.openai_url}/chat/completions"
        error = await refusal(http, Status(307, "Moved.", {"location": there}))

        assert isinstance(error, ModelRefused)
        assert (elsewhere.requests, elsewhere.refused) == ([], [])


async def test_a_port_where_nobody_listens_may_be_tried_again(http: HttpClient) -> None:
    async with ModelServer([]) as server:
        pass

    with pytest.raises(ModelUnavailable, match=r"^Cannot reach 127\.0\.0\.1:"):
        await ask(http, server)


async def test_a_server_that_does_not_speak_http_may_be_tried_again(http: HttpClient) -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        address = f"http://127.0.0.1:{port}/v1"
        with pytest.raises(ModelUnavailable, match=f"Cannot reach 127.0.0.1:{port}: "):
            await http.post(address, headers={}, body=(b"{}",), handle=answered)


async def test_a_password_in_an_address_is_not_repeated(http: HttpClient) -> None:
    async with ModelServer([]) as server:
        pass

    address = server.url.replace("://", "://ada:secret@")
    with pytest.raises(ModelUnavailable) as caught:
        await http.post(address, headers={}, body=(b"{}",), handle=answered)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"error": {"message": "No.", "code": 1}}', "No."),
        (b'{"error": "No."}', "No."),
        (b'{"message": "No."}', "No."),
        (b'{"detail": "No."}', "{'detail': 'No.'}"),
        (b'["No."]', "['No.']"),
        (b"<html>Bad gateway</html>\n", "<html>Bad gateway</html>"),
        (b"\xff\xfe", "��"),
        (b"", "nothing"),
        (b"x" * 1000, "x" * 300),
    ],
)
def test_what_an_error_says_is_found_in_every_shape(raw: bytes, said: str) -> None:
    assert error_text(raw) == said


@pytest.mark.parametrize("key", ["a\r\nx-injected: yes", "a\nb", "a\r", "a\0"])
async def test_a_key_cannot_bring_headers_of_its_own(http: HttpClient, key: str) -> None:
    async with ModelServer([]) as server:
        headers = {"authorization": f"Bearer {key}"}
        with pytest.raises(Misconfigured, match="contains a line break"):
            await http.post(
                f"{server.openai_url}/a", headers=headers, body=(b"{}",), handle=answered
            )

    assert (server.requests, server.refused) == ([], [])
