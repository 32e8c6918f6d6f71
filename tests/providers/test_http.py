"""HTTP errors: which are temporary, how long to wait, and what is never sent."""

import asyncio
from datetime import timedelta
from email.utils import format_datetime

import pytest

from agiraph.core.domain.errors import (
    ContextExceeded,
    Misconfigured,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    QuotaSpent,
)
from agiraph.models.http.client import HttpClient, Response
from agiraph.models.http.errors import error_for_status, error_text
from agiraph.testing import ManualClock, ModelServer
from agiraph.testing.model_server import Status, Step, Trickle, context_overflow
from tests.wording import Wording


async def post(http: HttpClient, server: ModelServer) -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "Hello."}]}'
    await http.post(
        f"{server.openai_url}/chat/completions", headers={}, body=(body,), handle=fail_if_answered
    )


async def fail_if_answered(response: Response) -> None:
    raise AssertionError("the server answered")


async def refusal(http: HttpClient, step: Step) -> ModelError:
    async with ModelServer([step]) as server:
        with pytest.raises(ModelError) as caught:
            await post(http, server)
        # Each server has another port: replace it, so that messages can be compared.
        host = server.url.removeprefix("http://")
        caught.value.args = (str(caught.value).replace(host, "host"),)
    return caught.value


@pytest.mark.parametrize("code", [408, 409, 425, 429, 500, 502, 503, 504, 529])
async def test_a_temporary_status_raises_model_unavailable(http: HttpClient, code: int) -> None:
    error = await refusal(http, Status(code, "Not now."))

    assert isinstance(error, ModelUnavailable)
    assert (str(error), error.retry_after) == (f"host answered {code}: Not now.", None)


PERMANENT = [
    301,
    400,
    401,
    402,
    403,
    404,
    422,
]


async def test_a_permanent_status_raises_model_refused_with_what_to_check(
    http: HttpClient, wording: Wording
) -> None:
    errors = {str(code): await refusal(http, Status(code, "No.")) for code in PERMANENT}
    assert all(isinstance(error, ModelRefused) for error in errors.values())
    wording({code: str(error) for code, error in errors.items()})


@pytest.mark.parametrize(
    "step",
    [
        context_overflow(),
        Status(413, "Payload too large."),
        Status(400, "The request exceeds the context window of 8192 tokens."),
        Trickle(20, context_overflow()),
    ],
)
async def test_an_overflow_of_the_context_raises_context_exceeded(
    http: HttpClient, step: Step
) -> None:
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
async def test_retry_after_is_read_as_seconds_or_as_a_date(
    http: HttpClient, value: str, seconds: float | None
) -> None:
    error = await refusal(http, Status(429, "Slow down.", {"retry-after": value}))

    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == seconds


async def test_a_retry_after_date_is_compared_with_the_clock(
    http: HttpClient, clock: ManualClock
) -> None:
    clock.advance(hours=5)
    date = format_datetime(clock.now() + timedelta(seconds=40), usegmt=True)
    error = await refusal(http, Status(503, "Later.", {"retry-after": date}))

    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == 40.0


async def test_redirects_are_not_followed(http: HttpClient) -> None:
    async with ModelServer([]) as elsewhere:
        there = f"{elsewhere.openai_url}/chat/completions"
        error = await refusal(http, Status(307, "Moved.", {"location": there}))

        assert isinstance(error, ModelRefused)
        assert (elsewhere.requests, elsewhere.refused) == ([], [])


async def test_a_refused_connection_may_be_retried(http: HttpClient) -> None:
    async with ModelServer([]) as server:
        pass

    refused = r"^Cannot reach 127\.0\.0\.1:\d+: the connection was refused\.$"
    with pytest.raises(ModelUnavailable, match=refused):
        await post(http, server)


async def test_a_response_that_is_not_http_may_be_retried(http: HttpClient) -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        address = f"http://127.0.0.1:{port}/v1"
        with pytest.raises(ModelUnavailable, match=f"Cannot reach 127.0.0.1:{port}: "):
            await http.post(address, headers={}, body=(b"{}",), handle=fail_if_answered)


async def test_a_password_in_a_url_is_not_in_the_error(http: HttpClient) -> None:
    async with ModelServer([]) as server:
        pass

    address = server.url.replace("://", "://ada:secret@")
    with pytest.raises(ModelUnavailable) as caught:
        await http.post(address, headers={}, body=(b"{}",), handle=fail_if_answered)
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
def test_the_message_is_found_in_every_form_of_error_body(raw: bytes, said: str) -> None:
    assert error_text(raw) == said


@pytest.mark.parametrize("key", ["a\r\nx-injected: yes", "a\nb", "a\r", "a\0"])
async def test_a_key_with_a_line_break_cannot_add_headers(http: HttpClient, key: str) -> None:
    async with ModelServer([]) as server:
        headers = {"authorization": f"Bearer {key}"}
        with pytest.raises(Misconfigured, match="contains a line break"):
            await http.post(
                f"{server.openai_url}/a", headers=headers, body=(b"{}",), handle=fail_if_answered
            )

    assert (server.requests, server.refused) == ([], [])


def test_a_quota_of_a_day_that_a_header_ends_soon_is_a_rate_limit() -> None:
    said = "Limit of tokens per day (TPD) reached. Please try again in 7m12s."
    soon = error_for_status(429, said, said, retry_after=432.0, has_retry_header=True)
    late = error_for_status(429, said, said, retry_after=40_000.0, has_retry_header=True)
    assert (type(soon), type(late)) == (ModelUnavailable, QuotaSpent)
