"""SMTP: an e-mail to the addresses in the settings, and to no others."""

import asyncio
import contextlib
import hashlib
import smtplib
import ssl
from collections.abc import Callable, Generator
from dataclasses import field
from email.message import EmailMessage
from email.utils import format_datetime
from functools import partial
from typing import Literal

from agiraph.core.domain.messages import INBOX, NEEDS_ANSWER, MessageKind
from agiraph.core.domain.records.channels import DeliveryFailed
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.domain.text.visible import call_lines, visible
from agiraph.core.domain.value import dataclass
from agiraph.features.channels.kinds.wording import note_of

TIMEOUT_S = 20.0
"""The time limit of each step with the mail server, not of the whole delivery."""
MAX_SUBJECT_CHARS = 150

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
    timeout_s: float = TIMEOUT_S
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """The trusted certificates; None: those of the system."""

    @property
    def description(self) -> str:
        server = f"{self.host}:{self.port} ({self.security})"
        return f"smtp by {server} from {self.sender} to {', '.join(self.recipients)}"

    async def send(self, outgoing: OutgoingMessage) -> None:
        await self.deliver(self.email(outgoing))

    async def probe(self) -> None:
        """Raise `DeliveryFailed` unless the server lets agiraph in. Nothing is sent."""
        await self._in_thread(self._enter)

    async def deliver(self, email: EmailMessage) -> None:
        await self._in_thread(partial(self._deliver, email))

    async def _in_thread(self, act: Callable[[], None]) -> None:
        try:
            # smtplib blocks, so it runs in a thread.
            await asyncio.to_thread(act)
        except (smtplib.SMTPException, OSError) as error:
            raise DeliveryFailed(f"{type(error).__name__}: {error}") from error

    def _enter(self) -> None:
        with self._server() as server:
            server.noop()

    def _deliver(self, email: EmailMessage) -> None:
        with self._server() as server:
            refused = server.send_message(email, self.sender, self.recipients)
        # The server took the message for some recipients and not for others. The next attempt sends
        # it to all again, with the same Message-ID.
        if refused:
            raise smtplib.SMTPRecipientsRefused(refused)

    @contextlib.contextmanager
    def _server(self) -> Generator[smtplib.SMTP]:
        tls = self.tls or ssl.create_default_context()
        with self._connect(tls) as server:
            # starttls checks the certificate and raises before the password is sent.
            if self.security == "starttls":
                server.starttls(context=tls)
            if self.user:
                server.login(self.user, self.password)
            yield server

    def _connect(self, tls: ssl.SSLContext) -> smtplib.SMTP:
        if self.security == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout_s, context=tls)
        return smtplib.SMTP(self.host, self.port, timeout=self.timeout_s)

    def email(self, outgoing: OutgoingMessage) -> EmailMessage:
        """Return the e-mail. If it is sent twice, both have the same Message-ID."""
        message = outgoing.message
        email = EmailMessage()
        email["From"], email["To"] = self.sender, ", ".join(self.recipients)
        subject = f"[{outgoing.team}] {message.kind}: {message.title or message.text}"
        email["Subject"] = header_line(subject)
        email["Date"] = format_datetime(message.created_at)
        digest = hashlib.sha256(outgoing.key.encode()).hexdigest()
        email["Message-ID"] = f"<{digest[:40]}@agiraph>"
        email["Idempotency-Key"] = outgoing.key
        # Asks mail servers not to answer with out-of-office notices.
        email["Auto-Submitted"] = "auto-generated"
        email.set_content(_content(outgoing))
        return email


def _content(outgoing: OutgoingMessage) -> str:
    message = outgoing.message
    parts = [f"{visible(outgoing.sender)} says:", message.full_text]
    if message.kind in NEEDS_ANSWER:
        # A question must not hide characters: the person decides by what they can see.
        parts = [f"{visible(outgoing.sender)} asks:", visible(message.text)]
    if message.call is not None:
        parts.append("\n".join(call_lines(message.call.name, message.call.arguments)))
    parts += [f"- {visible(option)}" for option in message.options]
    if message.label:
        parts.append(note_of(message))
    if message.kind in NEEDS_ANSWER:
        parts.append(f'Answer with: agiraph answer {message.id} "TEXT"')
    return "\n\n".join(parts)


def header_line(text: str) -> str:
    """Return one line: a line break in the text would add headers to the e-mail."""
    line = "".join(c for c in " ".join(text.split()) if c.isprintable())
    return line if len(line) <= MAX_SUBJECT_CHARS else line[: MAX_SUBJECT_CHARS - 1] + "…"
