"""SMTP: an e-mail to addresses from the settings, and to no others."""

import asyncio
import hashlib
import smtplib
import ssl
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Literal

from agiraph.domain.deliveries import OutgoingMessage
from agiraph.domain.messages import INBOX, NEEDS_ANSWER, MessageKind
from agiraph.domain.visible import call_lines, visible
from agiraph.runtime.channels import Undelivered

SECONDS = 20.0
SUBJECT = 150

Security = Literal["starttls", "tls", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Smtp:
    host: str
    sender: str
    recipients: tuple[str, ...]
    port: int = 587
    security: Security = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    kinds: frozenset[MessageKind] = INBOX
    seconds: float = SECONDS
    trust: ssl.SSLContext | None = field(default=None, repr=False)
    """Whom to believe; None: whom the system believes."""

    @property
    def shown(self) -> str:
        way = f"{self.host}:{self.port} ({self.security})"
        return f"smtp by {way} from {self.sender} to {', '.join(self.recipients)}"

    async def send(self, parcel: OutgoingMessage) -> None:
        try:
            await asyncio.to_thread(self._send, self.written(parcel))
        except (smtplib.SMTPException, OSError) as error:
            raise Undelivered(f"{type(error).__name__}: {error}") from error

    def _send(self, mail: EmailMessage) -> None:
        trust = self.trust or ssl.create_default_context()
        with self._connected(trust) as server:
            if self.security == "starttls":
                server.starttls(context=trust)
            if self.user:
                server.login(self.user, self.password)
            refused = server.send_message(mail, self.sender, self.recipients)
        if refused:
            raise smtplib.SMTPRecipientsRefused(refused)

    def _connected(self, trust: ssl.SSLContext) -> smtplib.SMTP:
        if self.security == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=self.seconds, context=trust)
        return smtplib.SMTP(self.host, self.port, timeout=self.seconds)

    def written(self, parcel: OutgoingMessage) -> EmailMessage:
        """The e-mail; whoever gets it twice can tell by its Message-ID that it is the same."""
        message = parcel.message
        mail = EmailMessage()
        mail["From"], mail["To"] = self.sender, ", ".join(self.recipients)
        mail["Subject"] = _line(f"[{parcel.team}] {message.kind}: {message.title or message.text}")
        mail["Date"] = format_datetime(message.created_at)
        mail["Message-ID"] = f"<{hashlib.sha256(parcel.key.encode()).hexdigest()[:40]}@agiraph>"
        mail["Idempotency-Key"] = parcel.key
        mail["Auto-Submitted"] = "auto-generated"
        parts = [f"{visible(parcel.sender)} says:", message.text]
        if message.kind in NEEDS_ANSWER:
            parts = [f"{visible(parcel.sender)} asks:", visible(message.text)]
        if message.call is not None:
            parts.append("\n".join(call_lines(message.call.name, message.call.arguments)))
        parts += [f"- {visible(option)}" for option in message.options]
        if message.kind in NEEDS_ANSWER:
            parts.append(f'Answer with: agiraph answer {message.id} "TEXT"')
        mail.set_content("\n\n".join(parts))
        return mail


def _line(text: str) -> str:
    """One line: a header must not be broken by what it says."""
    line = "".join(c for c in " ".join(text.split()) if c.isprintable())
    return line if len(line) <= SUBJECT else line[: SUBJECT - 1] + "…"
