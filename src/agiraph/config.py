"""Config: reads the settings from the environment, agiraph.toml and defaults, with their origin."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, NotRequired, cast

from pydantic import ConfigDict, Strict, StringConstraints, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agiraph.domain.effort import Effort
from agiraph.domain.errors import Misconfigured, Refused
from agiraph.domain.folders import split_access
from agiraph.domain.moments import parse_span, parse_zone
from agiraph.extensions.configured import NO_EXTENSIONS, ExtensionSettings, tool_rules
from agiraph.extensions.configured import TABLE as _TOOLS
from agiraph.home import stored_keys
from agiraph.home.configured_limits import TABLE as _LIMITS
from agiraph.home.configured_limits import command_limits
from agiraph.home.levels import KNOWN, Wanted
from agiraph.home.named_secrets import TABLE as _SECRETS
from agiraph.home.named_secrets import NamedSecrets, named_secrets
from agiraph.home.sandbox import Limits
from agiraph.location import FILE, IN_FILE, Location, chain, find, written_in
from agiraph.logs import LEVELS
from agiraph.mcp_client.settings import FILES_KEY as MCP_FILES
from agiraph.mcp_client.settings import TABLE as MCP
from agiraph.mcp_client.settings import McpServer
from agiraph.mcp_client.settings import literals as literals_of_mcp
from agiraph.mcp_client.settings import servers as servers_of_mcp
from agiraph.providers.facts.prices import Prices, Terms
from agiraph.providers.http.patience import PatienceSettings, patience_of, without_patience
from agiraph.providers.http.proxy import Proxies
from agiraph.providers.options import (
    OPTION_KEYS,
    ModelOptions,
    efforts_of,
    options_of,
    without_options,
)
from agiraph.providers.registry import Account, Keys
from agiraph.providers.searching import vendor_engine
from agiraph.providers.servers import Server
from agiraph.providers.servers import servers as servers_of
from agiraph.providers.vendors import KEY_VARIABLES, VENDORS, Vendor
from agiraph.redaction import keep
from agiraph.runtime.channels import Channel
from agiraph.runtime.channels.configured import channels as channels_of
from agiraph.runtime.configured_limits import RATES, USD_PER_DAY, rate_text, usd_per_day
from agiraph.runtime.configured_limits import TABLE as _DAY_LIMITS
from agiraph.runtime.configured_limits import rates as rates_of
from agiraph.runtime.configured_limits import shown as shown_limit
from agiraph.runtime.program_setup import Command
from agiraph.web.access import Web
from agiraph.web.configured import MakeVendorEngine, shown_indexes
from agiraph.web.configured import origin as engine_origin
from agiraph.web.configured import shown as shown_engine
from agiraph.web.configured import web as web_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value in force and its origin."""

    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Location):
    """All settings of an installation."""

    model: str
    reply_model: str
    """The model that writes replies to people; empty: each agent's own model."""
    reader_model: str
    """The model of the readers of a research; empty: that of its researcher."""
    efforts: dict[str, Effort] = field(default_factory=dict[str, Effort])
    """How much models think by the role of their agents: coordinator, worker, or a specialist."""
    keys: Keys = field(repr=False)
    prices: Prices = Prices()
    commands: dict[str, Command] = field(default_factory=dict[str, Command], repr=False)
    """Programs that can be hired as `cli:NAME`."""
    channels: dict[str, Channel] = field(default_factory=dict[str, Channel], repr=False)
    """Where messages for the person are sent, besides their inbox."""
    folders: dict[str, str] = field(default_factory=dict[str, str])
    """Folders of the person, by the name under which `--folder NAME` gives one to a team."""
    limits: Limits = Limits()
    """Processes, memory and disk that one command may use."""
    sandbox: Wanted = ""
    """The level at which commands are confined; empty: the best that works here."""
    sandbox_readable: tuple[Path, ...] = ()
    """Paths of this machine that every command may read, besides the system."""
    zone: str = ""
    """The time zone of the owner; empty: what they said in the web UI or with `agiraph zone`."""
    usd_per_day: float | None = None
    """The most dollars that all teams may spend on models in a day (UTC); None: no limit."""
    retention: timedelta | None = None
    """How long the steps and working files of ended work are kept; None: for good."""
    extensions: ExtensionSettings = NO_EXTENSIONS
    """Secrets of tools and servers, and which roles and teams get a tool of a person."""
    mcp: dict[str, McpServer] = field(default_factory=dict[str, McpServer], repr=False)
    """MCP servers whose tools agents may call."""
    web: Web = Web()
    """How web pages are fetched, and which search engine is used."""
    log: str = ""
    """The log level; empty: warnings at a terminal, info elsewhere."""
    traces: str = ""
    """`otlp` exports OpenTelemetry spans; empty: no tracing."""
    shown: dict[str, Setting] = field(default_factory=dict[str, Setting])
    """Every setting with its origin, for people to look at; secrets are masked."""

    @property
    def secrets(self) -> NamedSecrets:
        """Secrets that tools and servers are handed by name."""
        return self.extensions.secrets


SECRETS = frozenset((*KEY_VARIABLES, "AGIRAPH_TOKEN"))
_SERVERS = "servers"
_MODELS = "models"
_ROLES = "roles"
_COMMANDS = "commands"
_FOLDERS = "folders"
_CHANNELS = "channels"
_SEARCH = "search"
_WEB = "web"
_PACKAGES = "packages"
# User and password in an address: `show` masks the password in the list that people look at.
_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")


class _CommandEntry(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # pyright: ignore[reportGeneralTypeIssues]

    command: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    environment: NotRequired[list[str]]
    resumes: NotRequired[Annotated[bool, Strict()]]


@dataclass(frozen=True, slots=True)
class _Picker:
    """Chooses each setting's value, and records it with its origin for people to look at."""

    environ: Mapping[str, str]
    written: Mapping[str, Any]
    shown: dict[str, Setting]
    stored: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What a person entered in the web UI, by the name of the variable."""

    def __call__(self, name: str, default: str) -> str:
        """Return the value from the environment, agiraph.toml, the web UI or the default, in this
        order."""
        found = Setting(value=default, origin="default")
        if self.stored.get(name):
            found = Setting(value=self.stored[name], origin=stored_keys.FILE)
        if (key := IN_FILE.get(name, "")) in self.written:
            found = Setting(value=chain(self.written[key]), origin=FILE)
        # A variable that is set but empty counts as unset: containers often pass such variables on.
        if self.environ.get(name):
            found = Setting(value=self.environ[name], origin="environment")
        # `agiraph doctor` prints these values, and people paste its output into bug reports.
        masked = "set" if name in SECRETS and found.value else found.value
        self.show(name, masked, found.origin)
        return found.value

    def show(self, name: str, value: str, origin: str) -> None:
        """Record a value, without the password of an address in it."""
        self.shown[name] = Setting(value=_PASSWORD.sub(r"\1:…@", value), origin=origin)


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings in force; raise `Misconfigured` with the file and what is wrong in it."""
    place = find(environ)
    path, written = place.home / FILE, written_in(place.home / FILE)
    pick = _Picker(environ, written, {}, _stored(place.home))
    servers = servers_of(path, written.get(_SERVERS, {}), environ)
    models = written.get(_MODELS, {})
    patience = patience_of(path, written.get(_SERVERS), models)
    keys = _keys(pick, path, servers, options_of(path, models, environ), patience)
    commands = _commands(path, written.get(_COMMANDS, {}), environ)
    limits = command_limits(path, written.get(_LIMITS, {}))
    channels = _channels(pick, path, place)
    _show_tables(pick, keys, commands, limits, channels)
    prices = Prices(_terms(path, without_patience(without_options(models))))
    _show_place(pick, place)
    return Settings(
        home=place.home,
        database_url=pick("AGIRAPH_DATABASE_URL", place.database_url),
        model=pick("AGIRAPH_MODEL", keys.default_model),
        reply_model=pick("AGIRAPH_REPLY_MODEL", ""),
        reader_model=pick("AGIRAPH_READER_MODEL", ""),
        efforts=efforts_of(path, written.get(_ROLES, {})),
        keys=keys,
        prices=prices,
        commands=commands,
        channels=channels,
        folders=_folders(pick, path),
        limits=limits,
        sandbox=cast(Wanted, _one_of("AGIRAPH_SANDBOX", pick("AGIRAPH_SANDBOX", ""), KNOWN)),
        sandbox_readable=_readable(pick("AGIRAPH_SANDBOX_READ", "")),
        zone=_zone(pick("AGIRAPH_ZONE", "")),
        usd_per_day=_usd_per_day(pick, path),
        retention=_retention(pick("AGIRAPH_RETENTION", "")),
        extensions=_extensions(pick, path),
        mcp=_mcp(pick, path),
        web=_web(pick, path, partial(vendor_engine, keys, prices), own_port=place.address.port),
        address=place.address,
        token=pick("AGIRAPH_TOKEN", ""),
        log=_one_of("AGIRAPH_LOG", pick("AGIRAPH_LOG", ""), LEVELS),
        traces=_one_of("AGIRAPH_TRACES", pick("AGIRAPH_TRACES", ""), ("otlp",)),
        shown=pick.shown,
    )


def _stored(home: Path) -> dict[str, str]:
    """Return the keys and the model that a person entered in the web UI."""
    found = stored_keys.read(home)
    keep(found.secrets)
    return {**found.keys, **({"AGIRAPH_MODEL": found.model} if found.model else {})}


def _zone(name: str) -> str:
    """Return the name of a time zone; raise `Misconfigured` if there is none."""
    try:
        return name and parse_zone(name).key
    except Refused as error:
        raise Misconfigured(f"AGIRAPH_ZONE, or zone in {FILE}: {error}") from error


def _usd_per_day(pick: _Picker, path: Path) -> float | None:
    """Return what all teams may spend in a day, and record it."""
    usd, origin = usd_per_day(path, pick.written.get(_DAY_LIMITS, {}), pick.environ)
    pick.show(f"{_DAY_LIMITS}.{USD_PER_DAY}", shown_limit(usd), origin)
    return usd


def _web(pick: _Picker, path: Path, vendor_engine: MakeVendorEngine, *, own_port: int) -> Web:
    """Return the agents' web access, and record its engine and its reading hosts."""
    search, reading = pick.written.get(_SEARCH), pick.written.get(_WEB)
    web = web_of(
        path,
        search,
        pick.environ,
        own_port=own_port,
        vendor_engine=vendor_engine,
        reading=reading,
        packages=pick.written.get(_PACKAGES),
    )
    for name, value in shown_indexes(web.indexes).items():
        pick.show(f"{_PACKAGES}.{name}", value, FILE)
    if reading is not None:
        pick.show(f"{_WEB}.reading_hosts", ", ".join(web.reading_hosts.entries) or "none", FILE)
    pick.show(_SEARCH, shown_engine(web), engine_origin(search, pick.environ, web))
    return web


def _extensions(pick: _Picker, path: Path) -> ExtensionSettings:
    """Return the settings of own tools and of secrets, and record where each secret is."""
    found = named_secrets(path, pick.written.get(_SECRETS, {}), pick.environ)
    for name, source in found.sources.items():
        pick.show(f"{_SECRETS}.{name}", str(source), FILE)
    rules = tool_rules(path, pick.written.get(_TOOLS, {}))
    return ExtensionSettings(secrets=found, rules=rules)


def _channels(pick: _Picker, path: Path, place: Location) -> dict[str, Channel]:
    secrets = named_secrets(path, pick.written.get(_SECRETS, {}), pick.environ)
    written, url = pick.written.get(_CHANNELS, {}), place.address.url
    return channels_of(path, written, pick.environ, url=url, secrets=secrets)


def _mcp(pick: _Picker, path: Path) -> dict[str, McpServer]:
    """Return the MCP servers that a person wrote down, and record them."""
    written = pick.written
    declared = {*written.get(_SECRETS, {}), *stored_keys.read(path.parent).named}
    given = map(split_access, _folders(pick, path).values())
    writable = [folder for folder, access in given if access == "rw"]
    files = written.get(MCP_FILES, [])
    found = servers_of_mcp(path, written.get(MCP, {}), files, declared, writable)
    for name, server in found.items():
        keep(literals_of_mcp(server))
        pick.show(f"{MCP}.{name}", server.description, server.origin)
    return found


def _folders(pick: _Picker, path: Path) -> dict[str, str]:
    """Return the folders that can be given by name, and record them."""
    try:
        found = _adapter(dict[str, str]).validate_python(pick.written.get(_FOLDERS, {}))
    except ValidationError as error:
        raise Misconfigured(
            f'{path}: [{_FOLDERS}] names folders for teams: app = "/home/me/app:rw".'
        ) from error
    for name, folder in found.items():
        pick.show(f"{_FOLDERS}.{name}", folder, FILE)
    return found


def _show_place(pick: _Picker, place: Location) -> None:
    """Record home and address, for the list of settings only: `find` has read them."""
    pick("AGIRAPH_HOST", "127.0.0.1")
    pick("AGIRAPH_PORT", "8717")
    pick.show("AGIRAPH_HOME", str(place.home), _origin(pick.environ, "AGIRAPH_HOME"))


def _keys(
    pick: _Picker,
    path: Path,
    servers: dict[str, Server],
    options: dict[str, ModelOptions],
    patience: dict[str, PatienceSettings],
) -> Keys:
    accounts = {vendor.name: _account(pick, vendor) for vendor in VENDORS if not vendor.is_local}
    proxies = Proxies.read(pick.environ)
    keys = Keys(accounts, servers=servers, proxies=proxies, options=options, patience=patience)
    for name, value in keys.proxies.shown().items():
        pick.shown[name] = Setting(value=value, origin="environment")
    return replace(keys, rates=rates_of(path, pick.written.get(RATES, {})))


def _account(pick: _Picker, vendor: Vendor) -> Account:
    key, url = pick(vendor.key_variable, ""), pick(vendor.url_variable, "")
    is_stored = pick.shown[vendor.key_variable].origin == stored_keys.FILE
    return Account(key=key, base_url=url, is_stored=is_stored)


def _origin(environ: Mapping[str, str], name: str) -> str:
    return "environment" if environ.get(name) else "default"


def _show_tables(
    pick: _Picker,
    keys: Keys,
    commands: Mapping[str, Command],
    limits: Limits,
    channels: Mapping[str, Channel],
) -> None:
    """Record servers, commands, limits and channels with their origins."""
    for name, server in keys.servers.items():
        pick.show(f"{_SERVERS}.{name}", server.description, FILE)
    for name, command in commands.items():
        sees = f" (sees {', '.join(command.environment)})" if command.environment else ""
        resumes = " (resumes after a crash)" if command.resumes else ""
        value = command.command + sees + resumes
        pick.shown[f"{_COMMANDS}.{name}"] = Setting(value=value, origin=FILE)
    for name, rate in keys.rates.items():
        pick.show(f"{RATES}.{name}", rate_text(rate), FILE)
    origin = FILE if _LIMITS in pick.written else "default"
    for name, value in asdict(limits).items():
        pick.show(f"{_LIMITS}.{name}", str(value), origin)
    for name, channel in channels.items():
        pick.shown[f"{_CHANNELS}.{name}"] = Setting(value=channel.description, origin=FILE)


def _readable(paths: str) -> tuple[Path, ...]:
    """Return the paths of a setting, without symbolic links; those that do not exist do no harm."""
    given = (path.strip() for path in re.split(r"[:,]", paths))
    return tuple(Path(path).expanduser().resolve() for path in given if path)


def _retention(value: str) -> timedelta | None:
    if value.strip().lower() in ("", "off", "never"):
        return None
    try:
        age = parse_span(value)
    except Refused as error:
        raise Misconfigured(f"AGIRAPH_RETENTION: {error} Leave it out to keep all.") from error
    if age < timedelta(days=1):
        raise Misconfigured(f"AGIRAPH_RETENTION is {value!r}; one day is the least.")
    return age


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if (chosen := value.strip().lower()) in ("", *choices):
        return chosen
    raise Misconfigured(f"{name} {value!r} is not known; use {' or '.join(choices)}, or nothing.")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what checks a table; built once, because that takes milliseconds."""
    return TypeAdapter(kind)


def _terms(path: Path, written: Any) -> dict[str, Terms]:
    """Return each model's window and prices from the file."""
    try:
        return _adapter(dict[str, Terms]).validate_python(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Misconfigured(
            f"{path}: models.{where}: {first['msg']}. A model has its window in tokens and its "
            "price in dollars per million: input_usd, output_usd, cached_usd, cache_write_usd; "
            "search_usd is for a thousand web searches. Its "
            f"options are {', '.join(OPTION_KEYS)}."
        ) from error


def _commands(path: Path, written: Any, environ: Mapping[str, str]) -> dict[str, Command]:
    """Return the file's programs, each with the environment variables it may see."""
    example = '[commands.NAME] with command = "…" and, if it needs some, environment = ["VAR"]'
    if not isinstance(written, dict):
        raise Misconfigured(f"{path}: commands are tables, {example}.")
    found: dict[str, Command] = {}
    for name, table in cast(dict[str, Any], written).items():
        try:
            entry = _adapter(_CommandEntry).validate_python(table)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in (name, *first["loc"]))
            raise Misconfigured(
                f"{path}: commands.{where}: {first['msg']}. Write {example}."
            ) from error
        # A program sees the variables named here and no others: the
        # environment holds the vendors' keys.
        seen = {v: environ[v] for v in entry.get("environment", []) if v in environ}
        found[name] = Command(
            command=entry["command"], environment=seen, resumes=entry.get("resumes", False)
        )
    return found
