"""Configured web access: made from the settings, with the engine's key from the environment."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agiraph.domain.errors import Misconfigured
from agiraph.domain.search import Engine
from agiraph.redaction import keep
from agiraph.web.access import PREFIX, WantedEngine, Web
from agiraph.web.addresses import AddressPolicy, StandIn
from agiraph.web.fetch import Fetcher
from agiraph.web.gate.indexes import PackageIndexes, PythonSources
from agiraph.web.open_sources import OpenEngine
from agiraph.web.reading_hosts import ReadingHosts, is_entry
from agiraph.web.search import RemoteEngine

EXAMPLE = (
    'search = "open" or "none", or [search] with provider = "brave", "serper", "tavily", "searxng",'
    ' "openrouter", "anthropic", "openai", "gemini" or "open" and, if needed, base_url, model, '
    'contact, usd_per_1000 and key_env = "VAR"; or provider = "own:NAME" for an engine of your own'
)
READING_EXAMPLE = (
    '[web] with reading_hosts = ["docs.example.org", "*.example.com", "example.net/wiki/"]'
)
PACKAGES_EXAMPLE = (
    '[packages] with python = ["https://index.example/simple"], npm = "https://npm.example/" or '
    'cargo = "https://cargo.example/index/"; what is missing there, pip, npm and cargo are asked'
)
_IndexAddress = Annotated[str, Field(pattern=r"^(https?|file)://")]
_RegistryAddress = Annotated[str, Field(pattern=r"^(sparse\+)?https?://")]
VARIABLES = {
    "brave": "BRAVE_API_KEY",
    "serper": "SERPER_API_KEY",
    "tavily": "TAVILY_API_KEY",
    "searxng": "SEARXNG_URL",
}
"""The environment variable that configures each engine without an entry in the file. The first one
that is set counts."""
CHOICE = "AGIRAPH_SEARCH"
"""The environment variable that names an engine, or `none`. It replaces what the file says."""
SHOWN = "search"
NONE = "none"
MakeVendorEngine = Callable[[str, str], Engine | None]
"""Makes the search engine of a model vendor from its name and that of a model ("" for the usual
one); with "" as the vendor's name, that of the first vendor with a key. None if there is no key."""
stand_ins: dict[str, StandIn] = {}
"""Hosts that a test plays on loopback. Only Python code in this process can fill it, and none of
the program's does: no file, environment variable, option or request leads here."""


_Table = TypeVar("_Table", bound=BaseModel)


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    provider: Literal[
        "brave", "serper", "tavily", "searxng", "open", "none",
        "openrouter", "anthropic", "openai", "gemini",
    ]  # fmt: skip
    base_url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    key_env: Annotated[str, Field(min_length=1)] | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    """The model that a vendor searches with."""
    contact: Annotated[str, Field(min_length=3, max_length=200, pattern=r"^[!-~]+$")] | None = None
    """Where the open sources reach the person who runs this."""
    usd_per_1000: Annotated[float, Field(ge=0)] | None = None


class _WebEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    reading_hosts: list[str] | None = None


class _PackagesEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    python: list[_IndexAddress] | None = None
    npm: _RegistryAddress | None = None
    cargo: _RegistryAddress | None = None


def web(
    path: Path,
    written: Any,
    environ: Mapping[str, str],
    *,
    own_port: int,
    vendor_engine: MakeVendorEngine = lambda vendor, model: None,
    reading: Any = None,
    packages: Any = None,
) -> Web:
    """Return the agents' web access, from the tables [search] (`written`), [web] (`reading`) and
    [packages]. It refuses the port of the runtime's own API."""
    policy = AddressPolicy(refused_ports=frozenset({own_port}), stand_ins=dict(stand_ins))
    chosen = _chosen(written, environ)
    return Web(
        fetcher=Fetcher(policy=policy),
        engine=_engine(path, chosen, environ, vendor_engine),
        follows_keys=chosen is None,
        reading_hosts=_reading_hosts(path, reading),
        indexes=package_indexes(path, packages),
    )


def _reading_hosts(path: Path, written: Any) -> ReadingHosts:
    if written is None:
        return ReadingHosts()
    entry = _read(path, "web", _WebEntry, written, READING_EXAMPLE)
    hosts = entry.reading_hosts
    if wrong := [host for host in hosts or () if not is_entry(host)]:
        raise Misconfigured(
            f"{path}: web.reading_hosts: {wrong[0]!r} is not a host in small letters, with a path "
            f"behind it if only a part of the site counts. Write {READING_EXAMPLE}."
        )
    return ReadingHosts() if hosts is None else ReadingHosts(tuple(hosts))


def shown(web: Web) -> str:
    """Return the engine's name and address, and whether its key is set, for the settings' list."""
    match web.engine:
        case None:
            return NONE
        case OpenEngine(contact=contact):
            return f"open: Wikipedia, Crossref, arXiv (contact: {contact or 'none'})"
        case RemoteEngine(name=name, base_url=base_url, key=key):
            at = f" at {base_url}" if base_url else ""
            return f"{name}{at} (key: {'set' if key else 'none'})"
        case WantedEngine(own_name=own_name):
            return f"{PREFIX}{own_name} (code of your own)"
        case engine:
            return f"{engine.name} (the vendor's own search)"


def origin(written: Any, environ: Mapping[str, str], web: Web) -> str:
    """Return where the engine comes from: the environment, the file, or nobody's choice."""
    if environ.get(CHOICE):
        return "environment"
    if written is not None:
        return "agiraph.toml"
    return "default" if isinstance(web.engine, OpenEngine) else "environment"


def _chosen(written: Any, environ: Mapping[str, str]) -> Any:
    """Return the settings of the search engine that a person has named; else those of the first
    engine whose API key is in the environment; None if there is neither."""
    if choice := environ.get(CHOICE):
        written = choice.strip().lower()
    if written is None:
        written = next(
            (name for name, variable in VARIABLES.items() if environ.get(variable)), None
        )
    return {"provider": written} if isinstance(written, str) else written


def _engine(
    path: Path, chosen: Any, environ: Mapping[str, str], vendor_engine: MakeVendorEngine
) -> Engine | None:
    """Return the engine in force: the one that is chosen, else a model vendor's own search, else
    the open sources."""
    if chosen is None:
        return vendor_engine("", "") or OpenEngine()
    if (own := _own_engine(chosen)) is not None:
        return own
    entry = _read(path, "search", _Entry, chosen, EXAMPLE)
    match entry.provider:
        case "none":
            return None
        case "open":
            return OpenEngine(contact=entry.contact or "")
        case "searxng":
            return _searxng(path, entry, environ)
        case "brave" | "serper" | "tavily":
            key = _key(path, entry.key_env or VARIABLES[entry.provider], environ)
            return RemoteEngine(
                name=entry.provider,
                key=key,
                base_url=entry.base_url or "",
                own_usd_per_1000=entry.usd_per_1000,
            )
        case vendor:
            if (engine := vendor_engine(vendor, entry.model or "")) is None:
                raise Misconfigured(
                    f"{path}: search: {vendor} searches with the key of its models, which is not "
                    f"set. Set it, or write {EXAMPLE}."
                )
            return engine


def _own_engine(written: Any) -> WantedEngine | None:
    """Return the engine of a table whose provider names a person's own; else None."""
    table = cast(dict[str, Any], written) if isinstance(written, dict) else {}
    name = str(table.get("provider", "")) if len(table) == 1 else ""
    return WantedEngine(own_name=name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None


def _searxng(path: Path, entry: _Entry, environ: Mapping[str, str]) -> Engine:
    """SearXNG is a server of one's own: it has no default address and may need no key."""
    base_url = entry.base_url or environ.get("SEARXNG_URL", "")
    key = _key(path, entry.key_env, environ) if entry.key_env else ""
    if not base_url.startswith(("http://", "https://")):
        raise Misconfigured(
            f"SEARXNG_URL {base_url!r} must begin with https:// or http://; or give base_url in "
            f"{path}: {EXAMPLE}."
        )
    return RemoteEngine(
        name="searxng", key=key, base_url=base_url, own_usd_per_1000=entry.usd_per_1000
    )


def _key(path: Path, variable: str, environ: Mapping[str, str]) -> str:
    key = environ.get(variable, "")
    if not key:
        raise Misconfigured(
            f"{path}: [search] takes its key from {variable}, which is not set. Set it, or name "
            "another variable in `key_env`."
        )
    keep({variable: key})
    return key


def _read(path: Path, table: str, kind: type[_Table], written: Any, example: str) -> _Table:
    try:
        return kind.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in (table, *first["loc"]))
        raise Misconfigured(f"{path}: {where}: {first['msg']}. Write {example}.") from error


def package_indexes(path: Path, written: Any) -> PackageIndexes:
    """Return where commands get packages from. Passwords in addresses are kept out of all logs."""
    if written is None:
        return PackageIndexes()
    entry = _read(path, "packages", _PackagesEntry, written, PACKAGES_EXAMPLE)
    named: list[str] = [*(entry.python or []), entry.npm or "", entry.cargo or ""]
    for number, url in enumerate(named):
        if password := urlsplit(url).password:
            keep({f"password of index {number}": password})
    python = None if entry.python is None else PythonSources(indexes=tuple(entry.python))
    return PackageIndexes(python=python, npm=entry.npm, cargo=entry.cargo)


def shown_indexes(indexes: PackageIndexes) -> dict[str, str]:
    """Return the addresses that the settings name, by the key of the table."""
    python = "" if indexes.python is None else ", ".join(indexes.python.indexes)
    found = {"python": python, "npm": indexes.npm or "", "cargo": indexes.cargo or ""}
    return {name: value for name, value in found.items() if value}
