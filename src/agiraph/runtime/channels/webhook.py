"""Webhook: a signed POST to an address from the settings, and to no other."""

import asyncio
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Any

import orjson

from agiraph.domain.deliveries import OutgoingMessage
from agiraph.domain.messages import INBOX, MessageKind
from agiraph.providers.http_connection import Line, LineError, Lines, split
from agiraph.runtime.channels import Undelivered

SECONDS = 20.0
"""How long the other end may take in all."""
HEARD = 300
"""How much of a refusal is kept, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    url: str = field(repr=False)
    """Whoever knows it may be able to post there: it is shown to nobody."""
    kinds: frozenset[MessageKind] = INBOX
    secret: str = field(default="", repr=False)
    seconds: float = SECONDS

    @property
    def shown(self) -> str:
        signed = " (signed)" if self.secret else ""
        return f"webhook at {split(self.url)[2].decode()}{signed}"

    async def send(self, parcel: OutgoingMessage) -> None:
        host, path, name = split(self.url)
        body = as_json(parcel)
        line: Line | None = None
        try:
            async with asyncio.timeout(self.seconds):
                line = await Lines(self.seconds).take(host)
                await line.ask(self._head(path, name.decode(), parcel, body), (body,))
                if not 200 <= line.status < 300:
                    raise await _refusal(line)
        except TimeoutError as error:
            raise Undelivered(f"no answer within {self.seconds:g} s") from error
        except LineError as error:
            raise Undelivered(str(error)) from error
        finally:
            if line is not None:
                line.close()

    def _head(self, path: str, host: str, parcel: OutgoingMessage, body: bytes) -> bytes:
        headers = {
            "host": host,
            "content-type": "application/json",
            "content-length": str(len(body)),
            "user-agent": "agiraph",
            "idempotency-key": parcel.key,
            "connection": "close",
        }
        if self.secret:
            stamp = str(int(parcel.claimed_at.timestamp()))
            headers["agiraph-timestamp"] = stamp
            headers["agiraph-signature"] = signature(self.secret, stamp, body)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode()


def as_json(parcel: OutgoingMessage) -> bytes:
    """What is sent: the same bytes every time, so that a repetition is one to the byte."""
    message = parcel.message
    said: dict[str, Any] = {
        "key": parcel.key,
        "id": message.id,
        "kind": message.kind,
        "title": message.title,
        "text": message.text,
        "options": list(message.options),
        "from": parcel.sender,
        "team": {"id": message.team_id, "name": parcel.team},
        "node_id": message.node_id,
        "created_at": message.created_at.isoformat(),
    }
    if message.call is not None:
        said["call"] = {"name": message.call.name, "arguments": message.call.arguments}
    return orjson.dumps(said)


def signature(secret: str, stamp: str, body: bytes) -> str:
    """Proof that this came from us, now: over the time in seconds, a dot, and the body."""
    signed = stamp.encode() + b"." + body
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


async def _refusal(line: Line) -> Undelivered:
    said = (await line.chunk())[:HEARD].decode(errors="replace").strip()
    wait = line.headers.get("retry-after", "")
    pause = float(wait) if wait.isdecimal() else None
    return Undelivered(f"answered {line.status}: {said or 'nothing'}", pause=pause)
