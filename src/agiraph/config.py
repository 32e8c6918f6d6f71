"""Config: reads the settings from the environment, agiraph.toml and defaults, with their origin."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, StringConstraints

from agiraph.domain.effort import Effort
from agiraph.domain.errors import Misconfigured, Refused
from agiraph.domain.folders import split_access
from agiraph.domain.moments import parse_span, parse_zone
from agiraph.domain.sections import Must, Section, entry
from agiraph.extensions.configured import NO_EXTENSIONS, TOOLS, ExtensionSettings
from agiraph.home import stored_keys
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
from agiraph.providers.http.patience import PatienceEntry
from agiraph.providers.http.proxy import Proxies
from agiraph.providers.http.rate_limits import Rate
from agiraph.providers.options import ModelOptions, Role
from agiraph.providers.registry import Account, Keys
from agiraph.providers.searching import vendor_engine
from agiraph.providers.servers import SERVERS, Server
from agiraph.providers.servers import servers as servers_of
from agiraph.providers.vendors import KEY_VARIABLES, VENDORS, Vendor
from agiraph.redaction import keep
from agiraph.runtime.channels import Channel
from agiraph.runtime.channels.configured import channels as channels_of
from agiraph.runtime.program_setup import Command
from agiraph.web.access import Web
from agiraph.web.configured import (
    PACKAGES,
    READING,
    SEARCH,
    MakeVendorEngine,
    shown_indexes,
)
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
_FOLDERS = "folders"
_CHANNELS = "channels"
# User and password in an address: `show` masks the password in the list that people look at.
_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")
_USD_VARIABLE = "AGIRAPH_USD_PER_DAY"
_NO_LIMIT = "none"
_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@entry
class _DayLimit:
    usd_per_day: Annotated[
        _Usd | Annotated[str, Field(pattern=rf"(?i)^\s*{_NO_LIMIT}\s*$")],
        Must(f'must be a number of dollars, such as 50, or "{_NO_LIMIT}" for no limit'),
    ] = 50.0


@entry
class _CommandEntry:
    command: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    environment: tuple[str, ...] = ()
    resumes: bool = False


_DAY_LIMIT: Section[_DayLimit] = Section("limits", _DayLimit, "[limits] with usd_per_day = 50")
_RATES: Section[Rate] = Section(
    "rate_limits",
    Rate,
    "[rate_limits.PROVIDER] with requests_per_minute, tokens_per_minute or both",
)
_COMMAND_LIMITS: Section[Limits] = Section(
    "command_limits", Limits, f"whole numbers in [command_limits]: {', '.join(asdict(Limits()))}"
)
_COMMANDS: Section[_CommandEntry] = Section(
    "commands",
    _CommandEntry,
    '[commands.NAME] with command = "…" and, if it needs some, environment = ["VAR"]',
)
_ROLES: Section[Role] = Section("roles", Role, '[roles.worker] with effort = "low"')
_MODEL_EXAMPLE = (
    '[models."provider/model"] with its window in tokens and its price in dollars per million: '
    "input_usd, output_usd, cached_usd, cache_write_usd; search_usd is for a thousand web searches"
)
_TERMS: Section[Terms] = Section(
    "models", Terms, _MODEL_EXAMPLE, beside=(ModelOptions, PatienceEntry)
)
_OPTIONS: Section[ModelOptions] = Section(
    "models", ModelOptions, _MODEL_EXAMPLE, beside=(Terms, PatienceEntry)
)
_MODEL_PATIENCE: Section[PatienceEntry] = Section(
    "models", PatienceEntry, _MODEL_EXAMPLE, beside=(Terms, ModelOptions)
)
_SERVER_PATIENCE: Section[PatienceEntry] = Section(
    SERVERS.name, PatienceEntry, SERVERS.example, beside=(Server,)
)


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
    keys = _keys(pick, path)
    models = written.get(_TERMS.name)
    prices = Prices(_TERMS.read_each(path, models))
    commands = _commands(pick, path)
    limits = _COMMAND_LIMITS.read(path, written.get(_COMMAND_LIMITS.name))
    channels = _channels(pick, path, place)
    _show_tables(pick, keys, commands, limits, channels)
    roles = _ROLES.read_each(path, written.get(_ROLES.name))
    _show_place(pick, place)
    return Settings(
        home=place.home,
        database_url=pick("AGIRAPH_DATABASE_URL", place.database_url),
        model=pick("AGIRAPH_MODEL", keys.default_model),
        reply_model=pick("AGIRAPH_REPLY_MODEL", ""),
        reader_model=pick("AGIRAPH_READER_MODEL", ""),
        efforts={name: role.effort for name, role in roles.items() if role.effort is not None},
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
    """Return what all teams may spend in a day, None for no limit, and record it."""
    written = pick.written.get(_DAY_LIMIT.name)
    found, origin = _DAY_LIMIT.read(path, written), FILE if written else "default"
    if value := pick.environ.get(_USD_VARIABLE):
        given = _number(value)
        found, origin = _DAY_LIMIT.read(_USD_VARIABLE, {"usd_per_day": given}), "environment"
    usd = None if isinstance(found.usd_per_day, str) else found.usd_per_day
    shown = _NO_LIMIT if usd is None else f"{usd:g}"
    pick.show(f"{_DAY_LIMIT.name}.usd_per_day", shown, origin)
    return usd


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _web(pick: _Picker, path: Path, vendor_engine: MakeVendorEngine, *, own_port: int) -> Web:
    """Return the agents' web access, and record its engine and its reading hosts."""
    search, reading = pick.written.get(SEARCH.name), pick.written.get(READING.name)
    web = web_of(
        path,
        search,
        pick.environ,
        own_port=own_port,
        vendor_engine=vendor_engine,
        reading=reading,
        packages=pick.written.get(PACKAGES.name),
    )
    for name, value in shown_indexes(web.indexes).items():
        pick.show(f"{PACKAGES.name}.{name}", value, FILE)
    if reading is not None:
        hosts = ", ".join(web.reading_hosts.entries) or "none"
        pick.show(f"{READING.name}.reading_hosts", hosts, FILE)
    pick.show(SEARCH.name, shown_engine(web), engine_origin(search, pick.environ, web))
    return web


def _extensions(pick: _Picker, path: Path) -> ExtensionSettings:
    """Return the settings of own tools and of secrets, and record where each secret is."""
    found = named_secrets(path, pick.written.get(_SECRETS, {}), pick.environ)
    for name, source in found.sources.items():
        pick.show(f"{_SECRETS}.{name}", str(source), FILE)
    rules = TOOLS.read_each(path, pick.written.get(TOOLS.name))
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
    written = pick.written.get(_FOLDERS, {})
    if not isinstance(written, dict) or not all(
        isinstance(folder, str) for folder in cast(dict[str, Any], written).values()
    ):
        raise Misconfigured(
            f'{path}: [{_FOLDERS}] names folders for teams: app = "/home/me/app:rw".'
        )
    found = cast(dict[str, str], written)
    for name, folder in found.items():
        pick.show(f"{_FOLDERS}.{name}", folder, FILE)
    return found


def _show_place(pick: _Picker, place: Location) -> None:
    """Record home and address, for the list of settings only: `find` has read them."""
    pick("AGIRAPH_HOST", "127.0.0.1")
    pick("AGIRAPH_PORT", "8717")
    pick.show("AGIRAPH_HOME", str(place.home), _origin(pick.environ, "AGIRAPH_HOME"))


def _keys(pick: _Picker, path: Path) -> Keys:
    """Return the access to models, and record the proxies of the environment."""
    servers, models = pick.written.get(SERVERS.name), pick.written.get(_OPTIONS.name)
    patience = _SERVER_PATIENCE.read_each(path, servers)
    patience |= _MODEL_PATIENCE.read_each(path, models)
    options = _OPTIONS.read_each(path, models, pick.environ)
    keys = Keys(
        {vendor.name: _account(pick, vendor) for vendor in VENDORS if not vendor.is_local},
        servers=servers_of(path, servers, pick.environ),
        proxies=Proxies.read(pick.environ),
        options={name: one for name, one in options.items() if one != ModelOptions()},
        patience={name: one.given for name, one in patience.items() if one.given},
        rates=_RATES.read_each(path, pick.written.get(_RATES.name)),
    )
    for name, value in keys.proxies.shown().items():
        pick.shown[name] = Setting(value=value, origin="environment")
    return keys


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
        pick.show(f"{SERVERS.name}.{name}", server.description, FILE)
    for name, command in commands.items():
        sees = f" (sees {', '.join(command.environment)})" if command.environment else ""
        resumes = " (resumes after a crash)" if command.resumes else ""
        value = command.command + sees + resumes
        pick.shown[f"{_COMMANDS.name}.{name}"] = Setting(value=value, origin=FILE)
    for name, rate in keys.rates.items():
        pick.show(f"{_RATES.name}.{name}", rate.description, FILE)
    origin = FILE if _COMMAND_LIMITS.name in pick.written else "default"
    for name, value in asdict(limits).items():
        pick.show(f"{_COMMAND_LIMITS.name}.{name}", str(value), origin)
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


def _commands(pick: _Picker, path: Path) -> dict[str, Command]:
    """Return the file's programs, each with the environment variables it may see."""
    written, environ = pick.written.get(_COMMANDS.name), pick.environ
    # A program sees no other variables: the environment holds the vendors' keys.
    return {
        name: Command(
            command=one.command,
            environment={v: environ[v] for v in one.environment if v in environ},
            resumes=one.resumes,
        )
        for name, one in _COMMANDS.read_each(path, written).items()
    }
