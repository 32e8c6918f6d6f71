"""Mail host: a local SMTP server (aiosmtpd) and an IMAP server with one mailbox."""

import asyncio
import contextlib
import email
import email.policy
import re
import warnings
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult

ADDRESS = "agiraph@home.test"
PASSWORD = "the-password-of-the-mailbox"


class _Smtp(SMTP):
    """An SMTP server that notes its connections, so that they can be closed."""

    transports: list[Any]

    def connection_made(self, transport: Any) -> None:
        self.transports.append(transport)
        super().connection_made(transport)


@dataclass
class MailHost:
    """What agiraph sends is in `sent`; what it can read is put into its mailbox by `arrive`."""

    sent: list[EmailMessage] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    validity: int = 1
    is_relay: bool = False
    """Whether another IMAP server serves the mailbox."""
    smtp_port: int = 0
    imap_port: int = 0
    fetches: list[str] = field(default_factory=list)
    """What was fetched of mails."""
    refused: set[int] = field(default_factory=set)
    """The uids of mails that the server does not give out."""
    _mails: list[tuple[int, bytes]] = field(default_factory=list)
    _next_uid: int = 1
    _transports: list[Any] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator["MailHost"]:
        loop = asyncio.get_running_loop()
        smtp = await loop.create_server(self._smtp, "127.0.0.1", 0)
        tasks: set[asyncio.Task[Any]] = set()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await self._imap(reader, writer)
            finally:
                tasks.discard(task)
                writer.transport.abort()

        imap = await asyncio.start_server(handle, "127.0.0.1", 0)
        self.smtp_port = smtp.sockets[0].getsockname()[1]
        self.imap_port = imap.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            smtp.close()
            imap.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for transport in self._transports:
                transport.abort()
            await asyncio.sleep(0)  # the transports close their sockets

    def _smtp(self) -> SMTP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a password without TLS is no good idea
            made = _Smtp(
                self, authenticator=_authenticate, auth_require_tls=False, auth_required=True
            )
        made.transports = self._transports
        return made

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        raw = envelope.content.replace(b"\r\n", b"\n")
        mail = email.message_from_bytes(raw, policy=email.policy.default)
        assert isinstance(mail, EmailMessage)
        assert [mail["To"]] == envelope.rcpt_tos
        async with self.changed:
            self.sent.append(mail)
            self.changed.notify_all()
        return "250 Message accepted for delivery"

    async def until_sent(self, count: int) -> list[EmailMessage]:
        """Wait until so many mails were sent; return them all."""
        async with self.changed, asyncio.timeout(30):
            await self.changed.wait_for(lambda: len(self.sent) >= count)
        return self.sent

    def arrive(self, mail: EmailMessage | bytes) -> None:
        raw = mail if isinstance(mail, bytes) else mail.as_bytes(policy=email.policy.SMTP)
        self._mails.append((self._next_uid, raw))
        self._next_uid += 1

    def renumber(self) -> None:
        """Give all mails new numbers, as a restored mailbox has."""
        self.validity += 1
        self._mails = [(n, raw) for n, (_, raw) in enumerate(self._mails, 1)]
        self._next_uid = len(self._mails) + 1

    # ---- IMAP, as much of RFC 3501 as reading a mailbox needs ------------------------------------

    async def _imap(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK IMAP4rev1 ready\r\n")
        is_in = False
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while line := (await reader.readline()).decode().strip():
                tag, _, rest = line.partition(" ")
                command = rest.upper()
                if command.startswith("LOGIN"):
                    is_in = rest.split(" ")[1:] == [ADDRESS, f'"{PASSWORD}"']
                    said = "OK LOGIN done" if is_in else "NO [AUTHENTICATIONFAILED] wrong"
                    if is_in and self.is_relay:
                        writer.write(f"{tag} {said}\r\n".encode())
                        return await self.relay(reader, writer)
                elif not is_in and not command.startswith(("CAPABILITY", "LOGOUT")):
                    said = "NO log in first"
                else:
                    said = self._answer(rest, writer)
                writer.write(f"{tag} {said}\r\n".encode())
                await writer.drain()
                if command.startswith("LOGOUT"):
                    break

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the rest of a connection, after the client has signed in."""
        raise NotImplementedError

    def _answer(self, rest: str, writer: asyncio.StreamWriter) -> str:
        """Write the untagged responses to a command; return its tagged one."""
        match rest.split(" "):
            case ["CAPABILITY"]:
                writer.write(b"* CAPABILITY IMAP4rev1\r\n")
            case ["EXAMINE", '"INBOX"']:
                told = f"* {len(self._mails)} EXISTS\r\n* FLAGS (\\Seen)\r\n"
                told += f"* OK [UIDVALIDITY {self.validity}] valid\r\n"
                writer.write(f"{told}* OK [UIDNEXT {self._next_uid}] next\r\n".encode())
                return "OK [READ-ONLY] EXAMINE done"
            case ["UID", "SEARCH", "UID", numbers]:
                first = int(numbers.partition(":")[0])
                found = [uid for uid, _ in self._mails if uid >= first]
                # `9:*` includes the newest mail, whatever its number is.
                found = found or [uid for uid, _ in self._mails[-1:]]
                writer.write(f"* SEARCH {' '.join(map(str, found))}\r\n".encode())
            case ["UID", "FETCH", number, *items]:
                self.fetches.append(" ".join(items))
                if int(number) in self.refused:
                    return "NO it is damaged"
                [(place, raw)] = [
                    (n, raw) for n, (uid, raw) in enumerate(self._mails, 1) if uid == int(number)
                ]
                if re.search("BODY.PEEK", " ".join(items)):
                    section = re.search(r"<0\.(\d+)>", " ".join(items))
                    raw = raw if section is None else raw[: int(section[1])]
                    shown = "BODY[]" if section is None else "BODY[]<0>"
                    head = f"* {place} FETCH (UID {number} {shown} {{{len(raw)}}}\r\n".encode()
                    writer.write(head + raw + b")\r\n")
                else:
                    size = f"* {place} FETCH (UID {number} RFC822.SIZE {len(raw)})\r\n"
                    writer.write(size.encode())
            case ["LOGOUT"]:
                writer.write(b"* BYE\r\n")
            case _:
                return "BAD unknown command"
        return "OK done"


def _authenticate(
    server: Any, session: Any, envelope: Any, mechanism: str, data: Any
) -> AuthResult:
    is_right = (data.login, data.password) == (ADDRESS.encode(), PASSWORD.encode())
    return AuthResult(success=is_right)
