"""Configured channels: made from the settings file, with their secrets from the environment."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agiraph.domain.errors import Misconfigured
from agiraph.domain.messages import INBOX, MessageKind
from agiraph.home.named_secrets import NamedSecrets
from agiraph.redaction import keep
from agiraph.runtime.channels import Channel
from agiraph.runtime.channels.email import Email, MailServer
from agiraph.runtime.channels.smtp import Security, Smtp
from agiraph.runtime.channels.telegram import Telegram
from agiraph.runtime.channels.terminal import Terminal
from agiraph.runtime.channels.wanted import WantedChannel
from agiraph.runtime.channels.webhook import Webhook
from agiraph.web.access import PREFIX

EXAMPLE = (
    '[channels.NAME] with type = "terminal"; or "webhook" with url (or url_env) and, if it is to '
    'be signed, secret_env; or "smtp" with host, from, to and, if needed, port, security, user, '
    'password_env; or "telegram" with token_env (or token_secret); or "email" with address, '
    "smtp_host, imap_host, user and password_env (or password_secret); or type = "
    '"own:NAME" for one of your own. kinds limits what goes there'
)
_Kind = Literal["question", "approval", "briefing", "report", "failure", "result"]
_Address = Annotated[str, Field(pattern=r"^[^@\s,<>]+@[^@\s,<>]+$")]
_Text = Annotated[str, Field(min_length=1)]
_BOT_TOKEN = re.compile(r"\d+:[\w-]{20,}")


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    kinds: Annotated[list[_Kind], Field(min_length=1)] | None = None

    @property
    def message_kinds(self) -> frozenset[MessageKind]:
        return INBOX if self.kinds is None else frozenset(self.kinds)


class _TerminalEntry(_Entry):
    type: Literal["terminal"]


class _WebhookEntry(_Entry):
    type: Literal["webhook"]
    url: str = ""
    url_env: _Text | None = None
    secret_env: _Text | None = None


class _OwnEntry(_Entry):
    type: Annotated[str, Field(pattern=rf"^{PREFIX}[a-z][a-z0-9_-]{{0,39}}$")]


class _SmtpEntry(_Entry):
    type: Literal["smtp"]
    host: _Text
    sender: Annotated[_Address, Field(alias="from")]
    to: Annotated[list[_Address], Field(min_length=1)]
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    security: Security = "starttls"
    user: str = ""
    password_env: _Text | None = None


class _TelegramEntry(_Entry):
    type: Literal["telegram"]
    token_env: _Text | None = None
    token_secret: _Text | None = None
    api_url: str = "https://api.telegram.org"


class _EmailEntry(_Entry):
    type: Literal["email"]
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


_AnyEntry = _TerminalEntry | _WebhookEntry | _SmtpEntry | _TelegramEntry | _EmailEntry
_ENTRY: TypeAdapter[_AnyEntry] = TypeAdapter(
    Annotated[_AnyEntry, Field(discriminator="type")]  # pyright: ignore[reportArgumentType]
)


def channels(
    path: Path,
    written: Any,
    environ: Mapping[str, str],
    *,
    url: str = "",
    secrets: NamedSecrets | None = None,
) -> dict[str, Channel]:
    """Return the channels of a settings file by name, or raise `Misconfigured` with the entry.

    `url` is the address of this installation, for links in messages.
    """
    known = secrets or NamedSecrets()
    if not isinstance(written, dict):
        raise Misconfigured(f"{path}: channels are tables: {EXAMPLE}.")
    found: dict[str, Channel] = {}
    for name, table in cast(dict[str, Any], written).items():
        where = f"{path}: [channels.{name}]"
        if (own := _own(table)) is not None:
            found[name] = own
            continue
        try:
            entry = _ENTRY.validate_python(table)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            # The first part of the location is the entry's type, which the message repeats.
            inner = ".".join(str(part) for part in first["loc"][1:])
            raise Misconfigured(
                f"{where} {inner + ': ' if inner else ''}{first['msg']}. Write {EXAMPLE}."
            ) from error
        found[name] = _channel(where, entry, environ, url, known)
    return found


def _own(table: Any) -> WantedChannel | None:
    """Return the channel of a table whose type names a person's own; None for any other table."""
    try:
        entry = _OwnEntry.model_validate(table)
    except ValidationError:
        return None
    own_name = entry.type.removeprefix(PREFIX)
    return WantedChannel(own_name=own_name, kinds=entry.message_kinds)


def _channel(
    where: str, entry: _AnyEntry, environ: Mapping[str, str], url: str, secrets: NamedSecrets
) -> Channel:
    match entry:
        case _TerminalEntry():
            return Terminal(kinds=entry.message_kinds)
        case _WebhookEntry():
            return _webhook(where, entry, environ)
        case _SmtpEntry():
            return _smtp(where, entry, environ)
        case _TelegramEntry():
            given = (entry.token_env, entry.token_secret)
            token = _one_secret(where, "token", *given, environ, secrets)
            return _telegram(where, entry, token, url)
        case _EmailEntry():
            given = (entry.password_env, entry.password_secret)
            password = _one_secret(where, "password", *given, environ, secrets)
            return _email(where, entry, password, url)


def _webhook(where: str, entry: _WebhookEntry, environ: Mapping[str, str]) -> Webhook:
    # `url_env`: the address of a webhook is often its only secret.
    if bool(entry.url) == bool(entry.url_env):
        raise Misconfigured(f"{where} needs either url or url_env.")
    url = entry.url or _secret(where, "url_env", entry.url_env, environ)
    _check_url(where, url)
    secret = _secret(where, "secret_env", entry.secret_env, environ)
    return Webhook(url=url, secret=secret, kinds=entry.message_kinds)


def _smtp(where: str, entry: _SmtpEntry, environ: Mapping[str, str]) -> Smtp:
    if bool(entry.user) != bool(entry.password_env):
        raise Misconfigured(f"{where} needs both user and password_env, or neither.")
    if entry.user and entry.security == "none":
        raise Misconfigured(
            f'{where} would send the password unencrypted: set security to "starttls" or "tls".'
        )
    return Smtp(
        host=entry.host,
        port=entry.port or {"starttls": 587, "tls": 465, "none": 25}[entry.security],
        security=entry.security,
        sender=entry.sender,
        recipients=tuple(entry.to),
        user=entry.user,
        password=_secret(where, "password_env", entry.password_env, environ),
        kinds=entry.message_kinds,
    )


def _telegram(where: str, entry: _TelegramEntry, token: str, url: str) -> Telegram:
    _check_url(where, entry.api_url)
    if not _BOT_TOKEN.fullmatch(token):
        raise Misconfigured(
            f"{where} the token is not that of a bot. BotFather in Telegram gives you one, such as "
            "110201543:AAHdqTc…"
        )
    api = entry.api_url.rstrip("/")
    return Telegram(token=token, kinds=entry.message_kinds, api_url=api, url=url)


def _email(where: str, entry: _EmailEntry, password: str, url: str) -> Email:
    if "none" in (entry.smtp_security, entry.imap_security):
        raise Misconfigured(
            f'{where} would send the password unencrypted: use "starttls" or "tls" as security.'
        )
    smtp_port = entry.smtp_port or {"starttls": 587, "tls": 465}[entry.smtp_security]
    imap_port = entry.imap_port or {"starttls": 143, "tls": 993}[entry.imap_security]
    smtp, imap = entry.smtp_security, entry.imap_security
    return Email(
        address=entry.address,
        smtp=MailServer(host=entry.smtp_host, port=smtp_port, security=smtp),
        imap=MailServer(host=entry.imap_host, port=imap_port, security=imap),
        user=entry.user,
        password=password,
        folder=entry.folder,
        checked_by=entry.checked_by,
        kinds=entry.message_kinds,
        url=url,
    )


def _check_url(where: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises ValueError for a port that cannot be
    except ValueError:
        is_complete, parts = False, None
    if not is_complete or parts is None or any(c.isspace() for c in url):
        raise Misconfigured(f"{where} url must be complete: https://… or http://….")
    if parts.username or parts.password:
        raise Misconfigured(
            f"{where} url contains a password. Remove it and sign with secret_env instead: a "
            "settings file is easily copied or committed."
        )


def _one_secret(
    where: str,
    what: str,
    variable: str | None,
    name: str | None,
    environ: Mapping[str, str],
    secrets: NamedSecrets,
) -> str:
    """Return a secret that the entry takes from the environment or by its name in [secrets]."""
    if bool(variable) == bool(name):
        raise Misconfigured(f"{where} needs either {what}_env or {what}_secret.")
    if name is None:
        return _secret(where, f"{what}_env", variable, environ)
    try:
        return secrets.get(name)
    except Misconfigured as error:
        raise Misconfigured(f"{where} {what}_secret: {error}") from error


def _secret(where: str, key: str, variable: str | None, environ: Mapping[str, str]) -> str:
    """Return the secret in an environment variable; from now on logs and stored texts redact it."""
    if variable is None:
        return ""
    value = environ.get(variable, "")
    if not value:
        raise Misconfigured(f"{where} {key}: set {variable} in the environment.")
    keep({variable: value})
    return value
