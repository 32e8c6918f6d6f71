"""Configured channels: made from the settings file, with their secrets from the environment.

The terminal is here too, since nothing else is needed for it.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import Field

from agiraph.config import Picker
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.messages import INBOX, MessageKind
from agiraph.core.domain.records.channels import Channel, WantedChannel
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.domain.sections import Section, entry, must
from agiraph.core.domain.value import dataclass
from agiraph.features.channels.kinds.smtp import Security, Smtp
from agiraph.features.channels.kinds.telegram import Telegram
from agiraph.features.channels.kinds.webhook import Webhook
from agiraph.redaction import keep
from agiraph.web.access import PREFIX

if TYPE_CHECKING:
    from agiraph.features.channels.kinds.email import Email

_Kind = Literal["question", "approval", "briefing", "report", "failure", "result"]
_Address = Annotated[str, Field(pattern=r"^[^@\s,<>]+@[^@\s,<>]+$")]
_Text = Annotated[str, Field(min_length=1)]
_BOT_TOKEN = re.compile(r"\d+:[\w-]{20,}")

MAX_TEXT_CHARS = 200
NAME: re.Pattern[str] = re.compile(r"[a-z0-9][a-z0-9_-]{0,23}")
"""Names of channels that are added in the web UI."""


def _print(line: str) -> None:
    print(line, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """Prints a line on the terminal where the runtime was started."""

    kinds: frozenset[MessageKind] = INBOX
    write: Callable[[str], None] = _print

    @property
    def description(self) -> str:
        return "terminal"

    async def send(self, outgoing: OutgoingMessage) -> None:
        message = outgoing.message
        head = f"[{message.kind}] {outgoing.team}, {outgoing.sender}"
        text = message.title or message.text
        # The call is not printed, because a shortened call could hide the part that matters.
        more = " Read the call with: agiraph inbox --open" if message.call is not None else ""
        self.write(f"{_printable(head)}: {_printable(text)}{more} ({message.id})")


def _printable(text: str) -> str:
    """Return one short line without control characters, which could steer the terminal."""
    line = " ".join(text.split())
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return clean if len(clean) <= MAX_TEXT_CHARS else clean[: MAX_TEXT_CHARS - 1] + "…"


@entry
class _Entry:
    """The settings of the terminal and of own channels, and those that all channels have."""

    type: Annotated[
        str,
        Field(pattern=rf"^(terminal|webhook|smtp|telegram|email|{PREFIX}[a-z][a-z0-9_-]{{0,39}})$"),
        must(f"is not one of terminal, webhook, smtp, telegram, email or {PREFIX}NAME"),
    ]
    kinds: Annotated[frozenset[_Kind], Field(min_length=1)] = cast(frozenset[_Kind], INBOX)

    def channel(self, where: str, pick: Picker) -> Channel:
        """Return the channel, or raise `Misconfigured`; `where` names the entry in messages."""
        if self.type.startswith(PREFIX):
            return WantedChannel(own_name=self.type.removeprefix(PREFIX), kinds=self.kinds)
        return Terminal(kinds=self.kinds)


@entry
class _WebhookEntry(_Entry):
    url: str = ""
    url_env: _Text | None = None
    url_secret: _Text | None = None
    secret_env: _Text | None = None
    secret_secret: _Text | None = None

    def channel(self, where: str, pick: Picker) -> Webhook:
        # `url_env`: the address of a webhook is often its only secret.
        if sum(map(bool, (self.url, self.url_env, self.url_secret))) != 1:
            raise Misconfigured(f"{where} needs either url or url_env.")
        url = self.url or _one_secret(where, "url", self.url_env, self.url_secret, pick)
        _check_url(where, url)
        secret = ""
        if self.secret_env or self.secret_secret:
            secret = _one_secret(where, "secret", self.secret_env, self.secret_secret, pick)
        return Webhook(url=url, secret=secret, kinds=self.kinds)


@entry
class _SmtpEntry(_Entry):
    host: _Text
    sender: Annotated[_Address, Field(alias="from")]
    to: Annotated[tuple[_Address, ...], Field(min_length=1)]
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    security: Security = "starttls"
    user: str = ""
    password_env: _Text | None = None
    password_secret: _Text | None = None

    def channel(self, where: str, pick: Picker) -> Smtp:
        if bool(self.user) != bool(self.password_env or self.password_secret):
            raise Misconfigured(f"{where} needs both user and password_env, or neither.")
        if self.user and self.security == "none":
            raise Misconfigured(
                f'{where} would send the password unencrypted: set security to "starttls" or "tls".'
            )
        password = self.user and _one_secret(
            where, "password", self.password_env, self.password_secret, pick
        )
        return Smtp(
            host=self.host,
            port=self.port or {"starttls": 587, "tls": 465, "none": 25}[self.security],
            security=self.security,
            sender=self.sender,
            recipients=self.to,
            user=self.user,
            password=password,
            kinds=self.kinds,
        )


@entry
class _TelegramEntry(_Entry):
    token_env: _Text | None = None
    token_secret: _Text | None = None
    api_url: str = "https://api.telegram.org"

    def channel(self, where: str, pick: Picker) -> Telegram:
        token = _one_secret(where, "token", self.token_env, self.token_secret, pick)
        _check_url(where, self.api_url)
        if not _BOT_TOKEN.fullmatch(token):
            raise Misconfigured(
                f"{where} the token is not that of a bot. BotFather in Telegram gives you one, "
                "such as 110201543:AAHdqTc…"
            )
        api = self.api_url.rstrip("/")
        return Telegram(token=token, kinds=self.kinds, api_url=api, url=pick.url)


@entry
class _EmailEntry(_Entry):
    address: _Address
    smtp_host: _Text
    imap_host: _Text
    user: _Text
    password_env: _Text | None = None
    password_secret: _Text | None = None
    smtp_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    smtp_security: Security = "starttls"
    imap_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    imap_security: Security = "tls"
    folder: Annotated[str, Field(pattern=r'^[^"\\\r\n]+$')] = "INBOX"
    checked_by: str = ""

    def channel(self, where: str, pick: Picker) -> "Email":
        # What reads mail takes long to import.
        from agiraph.features.channels.kinds.email import Email, MailServer

        password = _one_secret(where, "password", self.password_env, self.password_secret, pick)
        if "none" in (self.smtp_security, self.imap_security):
            raise Misconfigured(
                f'{where} would send the password unencrypted: use "starttls" or "tls" as security.'
            )
        smtp, imap = self.smtp_security, self.imap_security
        smtp_port = self.smtp_port or {"starttls": 587, "tls": 465}[smtp]
        imap_port = self.imap_port or {"starttls": 143, "tls": 993}[imap]
        return Email(
            address=self.address,
            smtp=MailServer(host=self.smtp_host, port=smtp_port, security=smtp),
            imap=MailServer(host=self.imap_host, port=imap_port, security=imap),
            user=self.user,
            password=password,
            folder=self.folder,
            checked_by=self.checked_by,
            kinds=self.kinds,
            url=pick.url,
        )


_ENTRIES: Mapping[str, type[_Entry]] = {
    "webhook": _WebhookEntry,
    "smtp": _SmtpEntry,
    "telegram": _TelegramEntry,
    "email": _EmailEntry,
}
_EXAMPLE = (
    '[channels.NAME] with type = "terminal"; or "webhook" with url (or url_env) and, if it is to '
    'be signed, secret_env; or "smtp" with host, from, to and, if needed, port, security, user, '
    'password_env; or "telegram" with token_env (or token_secret); or "email" with address, '
    "smtp_host, imap_host, user and password_env (or password_secret); or type = "
    '"own:NAME" for one of your own. kinds limits what goes there'
)


def read(pick: Picker) -> dict[str, Channel]:
    """Return the channels of the settings by name, and record them."""
    written = pick.written.get("channels", {})
    if not isinstance(written, dict):
        raise Misconfigured(f"{pick.path}: channels are tables: {_EXAMPLE}.")
    found: dict[str, Channel] = {}
    for name, table in cast(dict[str, Any], written).items():
        found[name] = channel_of(pick, name, table)
        pick.show(f"channels.{name}", found[name].description)
    return found


def channel_of(pick: Picker, name: str, table: Any) -> Channel:
    """Return the channel of a table `[channels.NAME]`, or raise `Misconfigured`."""
    kind = cast(dict[str, Any], table).get("type") if isinstance(table, dict) else None
    section: Section[_Entry] = Section("channels", _ENTRIES.get(str(kind), _Entry), _EXAMPLE)
    (given,) = section.read_each(pick.path, {name: table}).values()
    return given.channel(f"{pick.path}: [channels.{name}]", pick)


def _check_url(where: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for a port that cannot be
    except ValueError:
        parts = urlsplit("")
    is_complete = parts.scheme in ("http", "https") and bool(parts.hostname)
    if not is_complete or any(c.isspace() for c in url):
        raise Misconfigured(f"{where} url must be complete: https://… or http://….")
    if parts.username or parts.password:
        raise Misconfigured(
            f"{where} url contains a password. Remove it and sign with secret_env instead: a "
            "settings file is easily copied or committed."
        )


def _one_secret(where: str, what: str, variable: str | None, name: str | None, pick: Picker) -> str:
    """Return a secret that the entry takes from the environment or by its name in [secrets]."""
    if bool(variable) == bool(name):
        raise Misconfigured(f"{where} needs either {what}_env or {what}_secret.")
    if name is None:
        return _secret(where, f"{what}_env", variable, pick)
    try:
        return pick.secrets.get(name)
    except Misconfigured as error:
        raise Misconfigured(f"{where} {what}_secret: {error}") from error


def _secret(where: str, key: str, variable: str | None, pick: Picker) -> str:
    """Return the secret in an environment variable; from now on logs and stored texts redact it."""
    if variable is None:
        return ""
    value = pick.environ.get(variable, "")
    if not value:
        raise Misconfigured(f"{where} {key}: set {variable} in the environment.")
    keep({variable: value})
    return value
