"""Webhook: a signed POST request to the URL in the settings, and to no other."""

import hashlib
import hmac
import io
from dataclasses import field
from typing import TYPE_CHECKING, Any

import orjson
from yarl import URL

from agiraph.core.domain.messages import INBOX, MessageKind
from agiraph.core.domain.records.channels import DeliveryFailed
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.domain.records.doubts import sentences
from agiraph.core.domain.value import dataclass

if TYPE_CHECKING:  # it takes long to import, and few processes use it
    import aiohttp

TIMEOUT_S = 20.0
"""The time limit of one delivery, from the DNS lookup to the end of the response's headers."""
MAX_REASON_BYTES = 300
"""How much of an error response is read and kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    url: str = field(repr=False)
    """The URL often contains a secret token, so it is never shown, logged or stored."""
    kinds: frozenset[MessageKind] = INBOX
    secret: str = field(default="", repr=False)
    timeout_s: float = TIMEOUT_S

    @property
    def description(self) -> str:
        signed = " (signed)" if self.secret else ""
        return f"webhook at {URL(self.url).host_port_subcomponent}{signed}"

    async def send(self, outgoing: OutgoingMessage) -> None:
        import aiohttp

        body = as_json(outgoing)
        try:
            async with (
                self._session() as session,
                session.post(
                    URL(self.url),
                    data=io.BytesIO(body),
                    headers=self._headers(outgoing, body),
                    # A redirect would send the message to a URL that is not in the settings.
                    allow_redirects=False,
                ) as response,
            ):
                if not 200 <= response.status < 300:
                    raise await _refusal(response)
        except TimeoutError as error:
            raise DeliveryFailed(f"no answer within {self.timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise DeliveryFailed(connection_problem(error)) from error

    def _session(self) -> "aiohttp.ClientSession":
        """Return a session for one request. It keeps no cookies and ignores proxy variables."""
        import aiohttp

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            # A few compressed bytes could unpack to gigabytes.
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=self.timeout_s),
        )

    def _headers(self, outgoing: OutgoingMessage, body: bytes) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "agiraph",
            # The same in every attempt: after a timeout nobody knows whether the
            # receiver took the message.
            "Idempotency-Key": outgoing.key,
        }
        if self.secret:
            timestamp = str(int(outgoing.claimed_at.timestamp()))
            headers["Agiraph-Timestamp"] = timestamp
            headers["Agiraph-Signature"] = signature(self.secret, timestamp, body)
        return headers


def as_json(outgoing: OutgoingMessage) -> bytes:
    """Return the request body. A message that is sent again has the same bytes, unless a person has
    granted the host of one of its links meanwhile."""
    message = outgoing.message
    fields: dict[str, Any] = {
        "key": outgoing.key,
        "id": message.id,
        "kind": message.kind,
        "title": message.title,
        "text": message.text,
        "options": list(message.options),
        "from": outgoing.sender,
        "team": {"id": message.team_id, "name": outgoing.team},
        "node_id": message.node_id,
        "created_at": message.created_at.isoformat(),
    }
    if message.doubts:
        fields["doubts"] = sentences(message.doubts)
    if message.label:
        fields["sources"] = list(message.label.sources)
    if message.call is not None:
        fields["call"] = {"name": message.call.name, "arguments": message.call.arguments}
    return orjson.dumps(fields)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the HMAC-SHA256 of the timestamp in seconds, a dot and the body.

    The timestamp is signed too, so that a receiver can refuse old requests that somebody replays.
    """
    signed = timestamp.encode() + b"." + body
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


async def _refusal(response: "aiohttp.ClientResponse") -> DeliveryFailed:
    reason = (await response.content.read(MAX_REASON_BYTES)).decode(errors="replace").strip()
    wait = response.headers.get("Retry-After", "")
    return DeliveryFailed(
        f"answered {response.status}: {reason or 'nothing'}",
        retry_after_s=float(wait) if wait.isdecimal() else None,
    )


def connection_problem(error: Exception) -> str:
    """Return an error's text without the URL, which aiohttp puts into some of its texts."""
    import aiohttp

    match error:
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return "the connection was closed before the end of the response"
        case aiohttp.ClientResponseError():
            return f"the response is not HTTP ({error.message})"
        case aiohttp.InvalidURL():
            return "the url in the settings is not valid"
        case _:
            return str(error) or type(error).__name__
