"""Configured web access: made from the settings, with the engine's key from the environment."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.records.search import Engine
from agiraph.core.domain.sections import FILE, Section, Written, entry
from agiraph.redaction import keep
from agiraph.sandbox.gate.indexes import PackageIndexes, PythonSources
from agiraph.web.access import PREFIX, WantedEngine, Web
from agiraph.web.addresses import AddressPolicy, StandIn
from agiraph.web.fetch import Fetcher
from agiraph.web.open_sources import OpenEngine
from agiraph.web.reading_hosts import SHIPPED, ReadingHosts, is_entry
from agiraph.web.search import RemoteEngine

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
NONE = "none"
MakeVendorEngine = Callable[[str, str], Engine | None]
"""Makes the search engine of a model vendor from its name and that of a model ("" for the usual
one); with "" as the vendor's name, that of the first vendor with a key. None if there is no key."""
stand_ins: dict[str, StandIn] = {}
"""Hosts that a test plays on loopback. Only Python code in this process can fill it, and none of
the program's does: no file, environment variable, option or request leads here."""


@entry
class _Search:
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


def _reading_host(given: str) -> str:
    if is_entry(given):
        return given
    raise ValueError(
        f"{given!r} is not a host in small letters, with a path behind it if only a part of the "
        "site counts"
    )


@entry
class _Reading:
    reading_hosts: tuple[Annotated[str, AfterValidator(_reading_host)], ...] = SHIPPED


_WebAddress = Annotated[str, Field(pattern=r"^(sparse\+)?https?://")]


@entry
class _Packages:
    python: tuple[Annotated[str, Field(pattern=r"^(https?|file)://")], ...] | None = None
    npm: _WebAddress | None = None
    cargo: _WebAddress | None = None


SEARCH: Section[_Search] = Section(
    "search",
    _Search,
    'search = "open" or "none", or [search] with provider = "brave", "serper", "tavily", '
    '"searxng", "openrouter", "anthropic", "openai", "gemini" or "open" and, if needed, base_url, '
    'model, contact, usd_per_1000 and key_env = "VAR"; or provider = "own:NAME" for an engine of '
    "your own",
)
READING: Section[_Reading] = Section(
    "web",
    _Reading,
    '[web] with reading_hosts = ["docs.example.org", "*.example.com", "example.net/wiki/"]',
)
PACKAGES: Section[_Packages] = Section(
    "packages",
    _Packages,
    '[packages] with python = ["https://index.example/simple"], '
    'npm = "https://npm.example/" or cargo = "https://cargo.example/index/"; what is missing '
    "there, pip, npm and cargo are asked",
)


def read(given: Written, vendor_engine: MakeVendorEngine, *, own_port: int) -> Web:
    """Return the agents' web access, and record its engine, its indexes and its reading hosts. It
    refuses the port of the runtime's own API."""
    policy = AddressPolicy(refused_ports=frozenset({own_port}), stand_ins=dict(stand_ins))
    chosen = _chosen(given)
    web = Web(
        fetcher=Fetcher(policy=policy),
        engine=_engine(given, chosen, vendor_engine),
        follows_keys=chosen is None,
        reading_hosts=ReadingHosts(given.table(READING).reading_hosts),
        indexes=_indexes(given.table(PACKAGES)),
    )
    given.show_each(PACKAGES.name, shown_indexes(web.indexes))
    if READING.name in given.written:
        hosts = ", ".join(web.reading_hosts.entries) or "none"
        given.show(f"{READING.name}.reading_hosts", hosts)
    given.show(SEARCH.name, shown(web), _origin(given, web))
    return web


def _indexes(packages: _Packages) -> PackageIndexes:
    """Return where commands get packages from. Passwords in addresses are kept out of all logs."""
    named = (*(packages.python or ()), packages.npm or "", packages.cargo or "")
    for number, url in enumerate(named):
        if password := urlsplit(url).password:
            keep({f"password of index {number}": password})
    python = None if packages.python is None else PythonSources(indexes=packages.python)
    return PackageIndexes(python=python, npm=packages.npm, cargo=packages.cargo)


def shown_indexes(indexes: PackageIndexes) -> dict[str, str]:
    """Return the addresses that the settings name, by the key of the table."""
    python = "" if indexes.python is None else ", ".join(indexes.python.indexes)
    found = {"python": python, "npm": indexes.npm or "", "cargo": indexes.cargo or ""}
    return {name: value for name, value in found.items() if value}


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


def _origin(given: Written, web: Web) -> str:
    """Return where the engine comes from: the environment, the file, or nobody's choice."""
    if given.environ.get(CHOICE):
        return "environment"
    if SEARCH.name in given.written:
        return FILE
    return "default" if isinstance(web.engine, OpenEngine) else "environment"


def _chosen(given: Written) -> Any:
    """Return the settings of the search engine that a person has named; else those of the first
    engine whose API key is in the environment; None if there is neither."""
    written, environ = given.written.get(SEARCH.name), given.environ
    if choice := environ.get(CHOICE):
        written = choice.strip().lower()
    if written is None:
        written = next((name for name, key in VARIABLES.items() if environ.get(key)), None)
    return {"provider": written} if isinstance(written, str) else written


def _engine(given: Written, chosen: Any, vendor_engine: MakeVendorEngine) -> Engine | None:
    """Return the engine in force: the one that is chosen, else a model vendor's own search, else
    the open sources."""
    if chosen is None:
        return vendor_engine("", "") or OpenEngine()
    if (own := _own_engine(chosen)) is not None:
        return own
    wanted = SEARCH.read(given.path, chosen)
    match wanted.provider:
        case "none":
            return None
        case "open":
            return OpenEngine(contact=wanted.contact or "")
        case "searxng":
            return _searxng(given, wanted)
        case "brave" | "serper" | "tavily":
            return RemoteEngine(
                name=wanted.provider,
                key=_key(given, wanted.key_env or VARIABLES[wanted.provider]),
                base_url=wanted.base_url or "",
                own_usd_per_1000=wanted.usd_per_1000,
            )
        case vendor:
            if (engine := vendor_engine(vendor, wanted.model or "")) is None:
                raise Misconfigured(
                    f"{given.path}: search: {vendor} searches with the key of its models, which is "
                    f"not set. Set it, or write {SEARCH.example}."
                )
            return engine


def _own_engine(written: Any) -> WantedEngine | None:
    """Return the engine of a table whose provider names a person's own; else None."""
    table = cast(dict[str, Any], written) if isinstance(written, dict) else {}
    name = str(table.get("provider", "")) if len(table) == 1 else ""
    return WantedEngine(own_name=name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None


def _searxng(given: Written, wanted: _Search) -> Engine:
    """SearXNG is a server of one's own: it has no default address and may need no key."""
    base_url = wanted.base_url or given.environ.get("SEARXNG_URL", "")
    key = _key(given, wanted.key_env) if wanted.key_env else ""
    if not base_url.startswith(("http://", "https://")):
        raise Misconfigured(
            f"SEARXNG_URL {base_url!r} must begin with https:// or http://; or give base_url in "
            f"{given.path}: {SEARCH.example}."
        )
    return RemoteEngine(
        name="searxng", key=key, base_url=base_url, own_usd_per_1000=wanted.usd_per_1000
    )


def _key(given: Written, variable: str) -> str:
    key = given.environ.get(variable, "")
    if not key:
        raise Misconfigured(
            f"{given.path}: [search] takes its key from {variable}, which is not set. Set it, or "
            "name another variable in `key_env`."
        )
    keep({variable: key})
    return key
