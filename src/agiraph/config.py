"""Config: reads the settings from the environment, agiraph.toml and defaults, with their origin."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, StringConstraints

from agiraph.core.domain.agents import Command
from agiraph.core.domain.errors import Misconfigured, Refused
from agiraph.core.domain.features import found_at, installed
from agiraph.core.domain.sections import FILE, Section, Setting, Written, entry, must
from agiraph.core.domain.times.moments import parse_span, parse_zone
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Effort
from agiraph.core.home import stored_keys
from agiraph.core.home.named_secrets import TABLE as _SECRETS
from agiraph.core.home.named_secrets import NamedSecrets, named_secrets
from agiraph.location import IN_FILE, Location, chain, find, written_in
from agiraph.logs import LEVELS
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.http.patience import PatienceEntry
from agiraph.models.http.proxy import Proxies
from agiraph.models.http.rate_limits import Rate
from agiraph.models.options import ModelOptions, Role
from agiraph.models.registry import Account, Keys
from agiraph.models.searching import vendor_engine
from agiraph.models.servers import SERVERS, Server
from agiraph.models.servers import servers as servers_of
from agiraph.models.vendors import KEY_VARIABLES, VENDORS, Vendor
from agiraph.redaction import keep
from agiraph.sandbox.levels import KNOWN, Wanted
from agiraph.sandbox.sandbox import Limits
from agiraph.web import configured
from agiraph.web.access import Web


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
    demo_s: float | None = None
    """About how long the story of the scripted demo takes; None: the program that shows it
    chooses."""
    retention: timedelta | None = None
    """How long the steps and working files of ended work are kept; None: for good."""
    secrets: NamedSecrets = field(default_factory=NamedSecrets, repr=False)
    """What tools and servers are handed by name."""
    features: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """What each feature has read of its own settings, by its name (`Feature.settings`)."""
    web: Web = Web()
    """How web pages are fetched, and which search engine is used."""
    log: str = ""
    """The log level; empty: warnings at a terminal, info elsewhere."""
    traces: str = ""
    """`otlp` exports OpenTelemetry spans; empty: no tracing."""
    shown: dict[str, Setting] = field(default_factory=dict[str, Setting])
    """Every setting with its origin, for people to look at; secrets are masked."""


SECRETS = frozenset((*KEY_VARIABLES, "AGIRAPH_TOKEN"))
_FOLDERS = "folders"
_USD_VARIABLE = "AGIRAPH_USD_PER_DAY"
_NO_LIMIT = "none"
_LONGEST_DEMO_S = 3600
_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@entry
class _DayLimit:
    usd_per_day: Annotated[
        _Usd | Annotated[str, Field(pattern=rf"(?i)^\s*{_NO_LIMIT}\s*$")],
        must(f'must be a number of dollars, such as 50, or "{_NO_LIMIT}" for no limit'),
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
class Picker(Written):
    """Chooses each setting's value, and records it with its origin for people to look at."""

    stored: Mapping[str, str] = field(repr=False)
    """What a person entered in the web UI, by the name of the variable."""
    secrets: NamedSecrets = field(repr=False)
    url: str
    """The address of this installation, for links in messages."""

    def __call__(self, name: str, default: str) -> str:
        """Return the value from the environment, agiraph.toml, the web UI or the default, in this
        order."""
        found = Setting(value=default, origin="default")
        if self.stored.get(name):
            found = Setting(value=self.stored[name], origin=stored_keys.FILE)
        if (key := name.removeprefix("AGIRAPH_").lower()) in IN_FILE & self.written.keys():
            found = Setting(value=chain(self.written[key]), origin=FILE)
        # A variable that is set but empty counts as unset: containers often pass such variables on.
        if self.environ.get(name):
            found = Setting(value=self.environ[name], origin="environment")
        # `agiraph doctor` prints these values, and people paste its output into bug reports.
        masked = "set" if name in SECRETS and found.value else found.value
        self.show(name, masked, found.origin)
        return found.value


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings in force; raise `Misconfigured` with the file and what is wrong in it."""
    place = find(environ)
    path = place.home / FILE
    written, stored = written_in(path), _stored(place.home)
    secrets = named_secrets(path, written.get(_SECRETS, {}), environ)
    pick = Picker(path, environ, written, {}, stored, secrets, place.address.url)
    keys, prices = _keys(pick), Prices(pick.tables(_TERMS))
    roles = pick.tables(_ROLES)
    pick.show_each(_SECRETS, secrets.sources)
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
        commands=_commands(pick),
        folders=_folders(pick),
        limits=_limits(pick),
        sandbox=cast(Wanted, _one_of("AGIRAPH_SANDBOX", pick("AGIRAPH_SANDBOX", ""), KNOWN)),
        sandbox_readable=_readable(pick("AGIRAPH_SANDBOX_READ", "")),
        zone=_zone(pick("AGIRAPH_ZONE", "")),
        usd_per_day=_usd_per_day(pick),
        demo_s=_demo_s(pick("AGIRAPH_DEMO_SECONDS", "")),
        retention=_retention(pick("AGIRAPH_RETENTION", "")),
        secrets=secrets,
        features={one.name: found_at(one.settings)(pick) for one in installed() if one.settings},
        web=configured.read(
            pick, partial(vendor_engine, keys, prices), own_port=place.address.port
        ),
        address=place.address,
        token=pick("AGIRAPH_TOKEN", ""),
        log=_one_of("AGIRAPH_LOG", pick("AGIRAPH_LOG", ""), LEVELS),
        traces=_one_of("AGIRAPH_TRACES", pick("AGIRAPH_TRACES", ""), ("otlp",)),
        shown=pick.shown,
    )


def _limits(pick: Picker) -> Limits:
    """Return the limits of commands, and record them."""
    limits = pick.table(_COMMAND_LIMITS)
    origin = FILE if _COMMAND_LIMITS.name in pick.written else "default"
    for name, most in asdict(limits).items():
        pick.show(f"{_COMMAND_LIMITS.name}.{name}", str(most), origin)
    return limits


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


def _usd_per_day(pick: Picker) -> float | None:
    """Return what all teams may spend in a day, None for no limit, and record it."""
    found = pick.table(_DAY_LIMIT)
    origin = FILE if pick.written.get(_DAY_LIMIT.name) else "default"
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


def _folders(pick: Picker) -> dict[str, str]:
    """Return the folders that can be given by name, and record them."""
    written = pick.written.get(_FOLDERS, {})
    if not isinstance(written, dict) or not all(
        isinstance(folder, str) for folder in cast(dict[str, Any], written).values()
    ):
        raise Misconfigured(
            f'{pick.path}: [{_FOLDERS}] names folders for teams: app = "/home/me/app:rw".'
        )
    found = cast(dict[str, str], written)
    pick.show_each(_FOLDERS, found)
    return found


def _show_place(pick: Picker, place: Location) -> None:
    """Record home and address, for the list of settings only: `find` has read them."""
    pick("AGIRAPH_HOST", "127.0.0.1")
    pick("AGIRAPH_PORT", "8717")
    origin = "environment" if pick.environ.get("AGIRAPH_HOME") else "default"
    pick.show("AGIRAPH_HOME", str(place.home), origin)


def _keys(pick: Picker) -> Keys:
    """Return the access to models, and record its rates and the proxies of the environment."""
    patience = {**pick.tables(_SERVER_PATIENCE), **pick.tables(_MODEL_PATIENCE)}
    options = pick.tables(_OPTIONS)
    keys = Keys(
        {vendor.name: _account(pick, vendor) for vendor in VENDORS if not vendor.is_local},
        servers=servers_of(pick),
        proxies=Proxies.read(pick.environ),
        options={name: one for name, one in options.items() if one != ModelOptions()},
        patience={name: one.given for name, one in patience.items() if one.given},
        rates=pick.tables(_RATES),
    )
    for name, value in keys.proxies.shown().items():
        pick.show(name, value, "environment")
    pick.show_each(_RATES.name, keys.rates)
    return keys


def _account(pick: Picker, vendor: Vendor) -> Account:
    key, url = pick(vendor.key_variable, ""), pick(vendor.url_variable, "")
    is_stored = pick.shown[vendor.key_variable].origin == stored_keys.FILE
    return Account(key=key, base_url=url, is_stored=is_stored)


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


def _demo_s(value: str) -> float | None:
    if not value:
        return None
    seconds = _number(value)
    if isinstance(seconds, float) and 0 <= seconds <= _LONGEST_DEMO_S:
        return seconds
    raise Misconfigured(
        f"AGIRAPH_DEMO_SECONDS is {value!r}; write a number of seconds up to {_LONGEST_DEMO_S}."
    )


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if (chosen := value.strip().lower()) in ("", *choices):
        return chosen
    raise Misconfigured(f"{name} {value!r} is not known; use {' or '.join(choices)}, or nothing.")


def _commands(pick: Picker) -> dict[str, Command]:
    """Return the file's programs, each with the environment variables it may see; record them."""
    environ = pick.environ
    # A program sees no other variables: the environment holds the vendors' keys.
    found = {
        name: Command(
            command=one.command,
            environment={v: environ[v] for v in one.environment if v in environ},
            resumes=one.resumes,
        )
        for name, one in pick.tables(_COMMANDS).items()
    }
    pick.show_each(_COMMANDS.name, found)
    return found
