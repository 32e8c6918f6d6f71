"""Config: environment, then agiraph.toml in the home, then defaults; and where each came from."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, NotRequired, cast

from pydantic import ConfigDict, Field, Strict, StringConstraints, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agiraph.domain.errors import Misconfigured
from agiraph.home.sandbox import Limits
from agiraph.location import FILE, IN_FILE, Place, chain, find, written_in
from agiraph.logs import LEVELS
from agiraph.providers.http_proxy import Proxies
from agiraph.providers.prices import Prices, Terms
from agiraph.providers.registry import Account, Keys, Server
from agiraph.providers.vendors import KEY_VARIABLES, REMOTE_VENDOR_NAMES, VENDORS
from agiraph.runtime.channels import Channel
from agiraph.runtime.channels.configured import channels as channels_of
from agiraph.runtime.command_line import Command
from agiraph.web.access import Web
from agiraph.web.configured import shown as shown_engine
from agiraph.web.configured import web as web_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value in force and its origin."""

    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Place):
    model: str
    reply_model: str
    """Who answers people in the foreground."""
    keys: Keys = field(repr=False)
    prices: Prices = Prices()
    commands: dict[str, Command] = field(default_factory=dict[str, Command], repr=False)
    """Programs that can be hired as `cli:NAME`."""
    channels: dict[str, Channel] = field(default_factory=dict[str, Channel], repr=False)
    """Where messages for the person go, besides their inbox."""
    limits: Limits = Limits()
    """What one command may use."""
    web: Web = Web()
    """How pages are opened, and which engine searches."""
    log: str = ""
    """How much is logged; empty: little at a terminal, more elsewhere."""
    traces: str = ""
    """Where spans of runs, model calls and tool calls go: `otlp`, or nowhere."""
    shown: dict[str, Setting] = field(default_factory=dict[str, Setting])
    """Every setting with its origin, secrets masked: for people to look at."""


SECRETS = frozenset((*KEY_VARIABLES, "AGIRAPH_TOKEN"))
_SERVERS = "servers"
_MODELS = "models"
_COMMANDS = "commands"
_LIMITS = "command_limits"
_CHANNELS = "channels"
_SEARCH = "search"
_SERVER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_NOT_SERVERS = REMOTE_VENDOR_NAMES | {"demo", "text"}
_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")


class _CommandEntry(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # pyright: ignore[reportGeneralTypeIssues]

    command: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    environment: NotRequired[list[str]]
    resumes: NotRequired[Annotated[bool, Strict()]]


_Count = Annotated[int, Strict(), Field(ge=1)]


class _LimitsEntry(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")  # pyright: ignore[reportGeneralTypeIssues]

    processes: _Count
    memory_mib: _Count
    file_mib: _Count
    free_disk_mib: _Count


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force, or `Misconfigured` with the file and line to look at."""
    place = find(environ)
    home, address = place.home, place.address
    written = written_in(home / FILE)
    shown: dict[str, Setting] = {}

    def pick(name: str, default: str) -> str:
        found = Setting(value=default, origin="default")
        if (key := IN_FILE.get(name)) in written:
            found = Setting(value=chain(written[key]), origin=FILE)
        if environ.get(name):
            found = Setting(value=environ[name], origin="environment")
        masked = "set" if name in SECRETS and found.value else found.value
        shown[name] = Setting(value=_PASSWORD.sub(r"\1:…@", masked), origin=found.origin)
        return found.value

    accounts = {
        vendor.name: Account(
            key=pick(vendor.key_variable, ""), base_url=pick(vendor.url_variable, "")
        )
        for vendor in VENDORS
        if not vendor.is_local
    }
    servers = _servers(home / FILE, written.get(_SERVERS, {}), environ)
    keys = Keys(accounts, servers=servers, proxies=Proxies.read(environ))
    for name, value in keys.proxies.shown().items():
        shown[name] = Setting(value=value, origin="environment")
    for name, server in keys.servers.items():
        key = f" (key in {server.key_env}: {'set' if server.key else 'missing'})"
        value = _PASSWORD.sub(r"\1:…@", server.base_url) + (key if server.key_env else "")
        shown[f"{_SERVERS}.{name}"] = Setting(value=value, origin=FILE)
    commands = _commands(home / FILE, written.get(_COMMANDS, {}), environ)
    for name, command in commands.items():
        sees = f" (sees {', '.join(command.environment)})" if command.environment else ""
        resumes = " (resumes after a crash)" if command.resumes else ""
        value = command.command + sees + resumes
        shown[f"{_COMMANDS}.{name}"] = Setting(value=value, origin=FILE)
    limits = _limits(home / FILE, written.get(_LIMITS, {}))
    origin = FILE if _LIMITS in written else "default"
    for name, value in asdict(limits).items():
        shown[f"{_LIMITS}.{name}"] = Setting(value=str(value), origin=origin)
    channels = channels_of(home / FILE, written.get(_CHANNELS, {}), environ)
    for name, channel in channels.items():
        shown[f"{_CHANNELS}.{name}"] = Setting(value=channel.description, origin=FILE)
    pick("AGIRAPH_HOST", "127.0.0.1")
    pick("AGIRAPH_PORT", "8717")
    web = web_of(home / FILE, written.get(_SEARCH), environ, own_port=address.port)
    if engine := shown_engine(web):
        origin = FILE if _SEARCH in written else "environment"
        shown[_SEARCH] = Setting(value=_PASSWORD.sub(r"\1:…@", engine), origin=origin)
    shown["AGIRAPH_HOME"] = Setting(
        value=str(home), origin="environment" if environ.get("AGIRAPH_HOME") else "default"
    )
    return Settings(
        home=home,
        database_url=pick("AGIRAPH_DATABASE_URL", place.database_url),
        model=pick("AGIRAPH_MODEL", keys.default_model),
        reply_model=pick("AGIRAPH_REPLY_MODEL", ""),
        keys=keys,
        prices=Prices(_terms(home / FILE, written.get(_MODELS, {}))),
        commands=commands,
        channels=channels,
        limits=limits,
        web=web,
        address=address,
        token=pick("AGIRAPH_TOKEN", ""),
        log=_one_of("AGIRAPH_LOG", pick("AGIRAPH_LOG", ""), LEVELS),
        traces=_one_of("AGIRAPH_TRACES", pick("AGIRAPH_TRACES", ""), ("otlp",)),
        shown=shown,
    )


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if (chosen := value.strip().lower()) in ("", *choices):
        return chosen
    raise Misconfigured(f"{name} {value!r} is not known; use {' or '.join(choices)}, or nothing.")


def _terms(path: Path, written: Any) -> dict[str, Terms]:
    """What the file says of models: their windows, and dollars per million tokens."""
    try:
        return TypeAdapter(dict[str, Terms]).validate_python(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Misconfigured(
            f"{path}: models.{where}: {first['msg']}. A model has its window in tokens and its "
            "price in dollars per million: input_usd, output_usd, cached_usd."
        ) from error


def _commands(path: Path, written: Any, environ: Mapping[str, str]) -> dict[str, Command]:
    """Programs that are named in the file, each with the variables it may see."""
    example = '[commands.NAME] with command = "…" and, if it needs some, environment = ["VAR"]'
    if not isinstance(written, dict):
        raise Misconfigured(f"{path}: commands are tables, {example}.")
    found: dict[str, Command] = {}
    for name, table in cast(dict[str, Any], written).items():
        try:
            entry = TypeAdapter(_CommandEntry).validate_python(table)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in (name, *first["loc"]))
            raise Misconfigured(
                f"{path}: commands.{where}: {first['msg']}. Write {example}."
            ) from error
        seen = {v: environ[v] for v in entry.get("environment", []) if v in environ}
        found[name] = Command(
            command=entry["command"], environment=seen, resumes=entry.get("resumes", False)
        )
    return found


def _limits(path: Path, written: Any) -> Limits:
    """What one command may use, as far as the file says."""
    try:
        return Limits(**TypeAdapter(_LimitsEntry).validate_python(written))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in (_LIMITS, *first["loc"]))
        known = ", ".join(asdict(Limits()))
        raise Misconfigured(
            f"{path}: {where}: {first['msg']}. Write whole numbers in [{_LIMITS}]: {known}."
        ) from error


def _servers(path: Path, written: Any, environ: Mapping[str, str]) -> dict[str, Server]:
    """The servers that are named in the file, each with its key from the environment."""
    example = '[servers.NAME] with base_url = "http://…/v1" and, if it needs one, key_env = "VAR"'
    if not isinstance(written, dict):
        raise Misconfigured(f"{path}: servers are tables, {example}.")
    servers: dict[str, Server] = {}
    for name, table in cast(dict[str, Any], written).items():
        where = f"{path}: [servers.{name}]"
        if not isinstance(table, dict):
            raise Misconfigured(f"{where} must be a table: {example}.")
        if name in _NOT_SERVERS:
            raise Misconfigured(f"{where} has the name of a provider; give it one of its own.")
        if not _SERVER_NAME.fullmatch(name):
            raise Misconfigured(f"{where}: a name is small letters, digits, - and _.")
        servers[name] = _server(where, cast(dict[str, Any], table), environ)
    return servers


def _server(where: str, table: dict[str, Any], environ: Mapping[str, str]) -> Server:
    if "key" in table:
        raise Misconfigured(
            f"{where} holds a key. Put it into the environment and its variable into key_env: "
            "a file is copied more easily than meant."
        )
    if unknown := sorted(set(table) - {"base_url", "key_env"}):
        raise Misconfigured(f"{where} has unknown settings {unknown}; it knows: base_url, key_env.")
    url, variable = table.get("base_url", ""), table.get("key_env", "")
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        raise Misconfigured(f"{where} base_url {url!r} must begin with https:// or http://.")
    if not isinstance(variable, str):
        raise Misconfigured(f"{where} key_env {variable!r} must be the name of a variable.")
    return Server(base_url=url, key=environ.get(variable, ""), key_env=variable)
