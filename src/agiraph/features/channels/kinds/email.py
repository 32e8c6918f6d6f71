"""E-mail: sends messages to the paired mailbox by SMTP, and reads its answers by IMAP.

An address in From proves nothing, because anybody can write it. A mail counts if it comes from the
paired address and answers a mail of ours, whose Message-ID holds a secret that only its recipient
knows; or if the person's own mail server has checked the sender (`Authentication-Results` of the
server that the settings name). A mail never decides an approval: it links to the inbox.
"""

import asyncio
import contextlib
import hashlib
import hmac
import imaplib
import logging
import ssl
from collections.abc import Generator
from dataclasses import field, replace
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, cast

from agiraph.core.domain.messages import INBOX, NEEDS_ANSWER, MessageKind
from agiraph.core.domain.records.channels import DeliveryFailed, Incoming, Receipt, Received
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.domain.text.visible import visible
from agiraph.core.domain.value import dataclass
from agiraph.features.channels.kinds.mail_reading import MAX_MAIL_BYTES, incoming, receipt_of
from agiraph.features.channels.kinds.smtp import TIMEOUT_S, Security, Smtp, header_line
from agiraph.features.channels.kinds.wording import shown

log: logging.Logger = logging.getLogger("agiraph.channels")

POLL_S = 30.0
"""How often the mailbox is asked for new mail."""
MAX_CHARACTERS = 100_000
MOST_MAILS = 20
"""The most mails that one call reads; the next call reads the rest."""
BEGINNING_BYTES = 64 * 1024
"""The most bytes of a large mail that are read before its sender is known."""
TOO_LARGE = "The mail is too large; its files were left out."
RESCAN = 50
"""How many of the newest mails are read again after the server has reassigned its uids. Mails that
were processed before are recognised by their keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """How to reach a mail server."""

    host: str
    port: int
    security: Security = "tls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Email:
    address: str
    """The mailbox of this installation, from which it sends and in which it receives."""
    smtp: MailServer
    imap: MailServer
    user: str = ""
    password: str = field(default="", repr=False)
    folder: str = "INBOX"
    checked_by: str = ""
    """The server whose `Authentication-Results` in arriving mail are believed; empty: none."""
    kinds: frozenset[MessageKind] = INBOX
    url: str = ""
    """The address of this installation, for links to the inbox."""
    poll_s: float = POLL_S
    timeout_s: float = TIMEOUT_S
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """The trusted certificates; None: those of the system."""

    @property
    def description(self) -> str:
        return f"email of {self.address} by {self.smtp.host} and {self.imap.host}"

    @property
    def pairing_hint(self) -> str:
        return f"Send a mail to {self.address} with this in its subject: {{code}}"

    async def probe(self) -> None:
        """Raise `DeliveryFailed` unless both servers let agiraph in."""
        await self._sender(self.address).probe()
        try:
            await asyncio.to_thread(self._enter)
        except (imaplib.IMAP4.error, OSError) as error:
            raise DeliveryFailed(f"{type(error).__name__}: {error}") from error

    def _enter(self) -> None:
        with self._mailbox():
            pass

    async def send(self, outgoing: OutgoingMessage) -> Receipt | None:
        mail = self.mail(outgoing)
        await self._deliver(mail, outgoing.address)
        return Receipt(id=receipt_of(str(mail["Message-ID"])))

    async def edit(self, outgoing: OutgoingMessage, receipt: str) -> None:
        """Do nothing: a sent mail cannot be changed, and it has no buttons to remove."""

    async def receive(self, cursor: str, paired: str | None) -> Received:
        if cursor:
            # The first call has no cursor and does not wait: it only sets one and reads no mail.
            await asyncio.sleep(self.poll_s)
        try:
            # imaplib blocks, so it runs in a thread.
            return await asyncio.to_thread(self._read, cursor, paired)
        except (imaplib.IMAP4.error, OSError) as error:
            raise DeliveryFailed(f"{type(error).__name__}: {error}") from error

    async def acknowledge(self, incoming: Incoming, notice: str) -> None:
        if not notice:
            return
        mail = self._draft(incoming.sender, "Re: your message", notice)
        mail["Message-ID"] = self._message_id(f"notice:{incoming.key}", incoming.sender)
        if incoming.handle:
            mail["In-Reply-To"] = mail["References"] = incoming.handle
        await self._deliver(mail, incoming.sender)

    def mail(self, outgoing: OutgoingMessage) -> EmailMessage:
        """Return a message as an e-mail. If it is sent twice, both have the same Message-ID."""
        message = outgoing.message
        what = message.title or visible(message.text)
        subject = f"[{outgoing.team}] {message.kind}: {what}"
        text = shown(outgoing, url=self.url, limit=MAX_CHARACTERS).text
        if message.kind == "question":
            text += "\n\nReply to this mail to answer."
        if message.kind == "approval":
            text += f"\n\nDecide here: {self.url}/inbox/{message.id}"
        mail = self._draft(outgoing.address, subject, text)
        mail["Date"] = format_datetime(message.created_at)
        mail["Message-ID"] = self._message_id(outgoing.key, outgoing.address)
        # Clients show mails of one work as one thread. The id is no secret: it is not believed.
        about = outgoing.answers or f"<{message.node_id or message.id}@agiraph.invalid>"
        mail["References"] = header_line(about)
        if outgoing.answers:
            mail["In-Reply-To"] = header_line(outgoing.answers)
        if message.kind in NEEDS_ANSWER:
            mail["Importance"] = "high"
        return mail

    def _draft(self, to: str, subject: str, text: str) -> EmailMessage:
        mail = EmailMessage()
        mail["From"], mail["To"] = self.address, to
        mail["Subject"] = header_line(subject)
        # Asks mail servers not to answer with out-of-office notices.
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(text)
        return mail

    def _message_id(self, key: str, to: str) -> str:
        """Return the Message-ID of a mail to this address. It is the same in every attempt, and
        holds a MAC that only this installation can compute."""
        name = hashlib.sha256(key.encode()).hexdigest()[:24]
        return f"<{name}.{self._proof(name, to)}@agiraph.invalid>"

    def _proof(self, name: str, to: str) -> str:
        said = f"{name} {to.lower()}".encode()
        return hmac.new(self.password.encode(), said, hashlib.sha256).hexdigest()[:32]

    def is_ours(self, message_id: str, sender: str) -> bool:
        """Whether this is the id of a mail that was sent from here to this sender."""
        name, _, proof = message_id.strip("<>").partition("@")[0].partition(".")
        # Without a password there is no secret, and nothing is proven.
        return bool(self.password) and hmac.compare_digest(
            proof.encode(), self._proof(name, sender).encode()
        )

    async def _deliver(self, mail: EmailMessage, to: str) -> None:
        await self._sender(to).deliver(mail)

    def _sender(self, to: str) -> Smtp:
        place = self.smtp
        return Smtp(
            host=place.host,
            port=place.port,
            security=place.security,
            user=self.user,
            password=self.password,
            sender=self.address,
            recipients=(to,),
            timeout_s=self.timeout_s,
            tls=self.tls,
        )

    @contextlib.contextmanager
    def _mailbox(self) -> Generator[imaplib.IMAP4]:
        place, tls = self.imap, self.tls or ssl.create_default_context()
        if place.security == "tls":
            box: imaplib.IMAP4 = imaplib.IMAP4_SSL(
                place.host, place.port, ssl_context=tls, timeout=self.timeout_s
            )
        else:
            box = imaplib.IMAP4(place.host, place.port, timeout=self.timeout_s)
        try:
            if place.security == "starttls":
                box.starttls(tls)
            if self.user:
                box.login(self.user, self.password)
            yield box
        finally:
            try:
                box.logout()
            except (imaplib.IMAP4.error, OSError):
                # A logout that fails leaves the socket open.
                with contextlib.suppress(OSError):
                    box.shutdown()

    def _read(self, cursor: str, paired: str | None) -> Received:
        with self._mailbox() as box:
            # Read-only: the cursor tells which mails are new, not the flags of the mailbox.
            _checked(box.select(f'"{self.folder}"', readonly=True))
            validity = _response(box, "UIDVALIDITY")
            newest = max(_response(box, "UIDNEXT") - 1, 0)
            if not cursor:
                return Received(cursor=f"{validity}:{newest}")
            last = int(cursor.partition(":")[2])
            if int(cursor.partition(":")[0]) != validity:
                last = max(newest - RESCAN, 0)  # uids were reassigned; known mails have known keys
            found: list[Incoming] = []
            for uid in _uids(box, last)[:MOST_MAILS]:
                last = uid
                if (mail := self._read_mail(box, uid, paired)) is not None:
                    found.append(mail)
            return Received(cursor=f"{validity}:{last}", messages=tuple(found))

    def _read_mail(self, box: imaplib.IMAP4, uid: int, paired: str | None) -> Incoming | None:
        """Return one mail; None if it is gone, sent by a program, or cannot be read.

        Of a large mail only the beginning is read, unless it proves that it is the paired
        person's.
        """
        try:
            # What the server says of a mail's size is not believed: some do not count it exactly.
            raw = _fetch(box, uid, BEGINNING_BYTES)
            is_whole = len(raw) < BEGINNING_BYTES
            mail = self._incoming(raw, paired if is_whole else None)
            if not is_whole and mail is not None and mail.sender == paired and mail.is_proven:
                raw = _fetch(box, uid, MAX_MAIL_BYTES + 1)
                is_whole = len(raw) <= MAX_MAIL_BYTES
                mail = self._incoming(raw, paired) if is_whole else mail
        except (imaplib.IMAP4.abort, OSError):  # the connection is of no use any more
            raise
        except Exception:  # a mail that the server refuses or the parser fails on blocks no other
            log.warning("mail %d cannot be read", uid, exc_info=True)
            return None
        if mail is None or is_whole or mail.sender != paired:
            return mail
        return replace(mail, text=f"{mail.text}\n({TOO_LARGE})")

    def _incoming(self, raw: bytes, paired: str | None) -> Incoming | None:
        """Return a mail as a message. `paired` is None for a beginning: its files are cut off."""
        return incoming(
            raw, own=self.address, paired=paired, checked_by=self.checked_by, is_ours=self.is_ours
        )


def _checked(answer: tuple[str, Any]) -> Any:
    status, data = answer
    if status != "OK":
        raise imaplib.IMAP4.error(f"the server answered {status}")
    return data


def _response(box: imaplib.IMAP4, name: str) -> int:
    _, data = box.response(name)
    numbers = [cast(bytes, part) for part in data or () if part]
    if not numbers:
        raise imaplib.IMAP4.error(f"the server does not tell {name}")
    return int(numbers[-1])


def _uids(box: imaplib.IMAP4, after: int) -> list[int]:
    """Return the uids after this one, in order."""
    data = _checked(box.uid("SEARCH", f"UID {after + 1}:*"))
    found = sorted({int(n) for part in data if part for n in cast(bytes, part).split()})
    # `5:*` means the newest mail too, if its number is smaller than 5.
    return [uid for uid in found if uid > after]


def _fetch(box: imaplib.IMAP4, uid: int, most: int) -> bytes:
    """Return at most this many bytes of a mail, without marking it as read; empty if it is gone."""
    for piece in _checked(box.uid("FETCH", str(uid), f"(BODY.PEEK[]<0.{most}>)")):
        if isinstance(piece, tuple):
            return cast(tuple[bytes, bytes], piece)[1]
    return b""
