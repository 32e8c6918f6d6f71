"""Surroundings: the checks of search, packages, own tools and MCP servers."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agiraph.config import Settings
from agiraph.core.domain.errors import AgiraphError, NotFound, Refused
from agiraph.core.domain.records.search import Engine
from agiraph.core.domain.text.plurals import counted
from agiraph.core.home import health as home_health
from agiraph.core.home.layout import Home
from agiraph.doctor.checkup import Checkup
from agiraph.features.channels.kinds import WantedChannel
from agiraph.features.extensions.loading import Extensions
from agiraph.features.extensions.resolving import web_with_keys
from agiraph.features.extensions.skills import Skills
from agiraph.features.mcp import pins
from agiraph.features.mcp.servers import McpServers
from agiraph.features.mcp.settings import McpServer
from agiraph.models.searching import VendorEngine
from agiraph.redaction import redact
from agiraph.sandbox.gate.indexes import PackageIndexes
from agiraph.sandbox.gate.rules import Denied
from agiraph.sandbox.gate.upstream import Upstream
from agiraph.sandbox.levels import CommandRules
from agiraph.sandbox.sandbox import database_files
from agiraph.web import access
from agiraph.web.access import WantedEngine
from agiraph.web.addresses import AddressPolicy
from agiraph.web.configured import shown, shown_indexes
from agiraph.web.open_sources import OpenEngine
from agiraph.web.search import SEARXNG_FORBIDS, SEARXNG_LINES, SETTINGS


async def check(checkup: Checkup) -> None:
    """Check what agents use besides models. Without `online`, only the home is looked at."""
    await check_search(checkup)
    await check_packages(checkup)
    await check_extensions(checkup)
    await check_mcp(checkup)


async def check_search(checkup: Checkup) -> None:
    """Say which engine searches the web and what a thousand searches cost.

    A SearXNG server is asked for JSON, since it forbids it by default. Other engines are asked with
    --online, which costs as much as one search.
    """
    web = checkup.settings.web
    if checkup.models is not None:
        web = access.present(web_with_keys(web, checkup.models))
    engine = web.engine
    if engine is None:
        return checkup.note("search", f"Agents cannot search the web. To let them, set {SETTINGS}.")
    said = f"{redact(shown(web))}. {_price(engine)}"
    if isinstance(engine, OpenEngine):
        said += " It finds facts and papers, and no news."
    if engine.name != "searxng" and not checkup.online:
        return checkup.fine("search", said)
    if isinstance(engine, OpenEngine):
        why = await access.why_no_search(web)
        return checkup.note("search", f"{said} {why}") if why else checkup.fine("search", said)
    try:
        await engine.search("wikipedia", limit=1)
    except Refused as error:
        if str(error) == SEARXNG_FORBIDS:
            what = f"{said} It forbids JSON. Write into its settings.yml and restart it:"
            return checkup.problem("search", what, *SEARXNG_LINES)
        return checkup.problem("search", f"{said} It does not answer: {redact(str(error))}")
    return checkup.fine("search", f"{said} It answers.")


def _price(engine: Engine) -> str:
    price = engine.usd_per_1000
    if price is None:
        return "What a search costs is not known."
    # A vendor's search is a call of a model, whose tokens are paid as well.
    tokens = " and the tokens of a small model" if isinstance(engine, VendorEngine) else ""
    return f"A thousand searches cost {f'about ${price:g}' if price else 'nothing'}{tokens}."


async def check_packages(checkup: Checkup) -> None:
    """Say which package indexes commands read. With --online each of them is asked; else pip, npm
    and cargo are not even run, because that takes seconds."""
    web = checkup.settings.web
    if not checkup.online:
        named = [f"{kind}: {url}" for kind, url in shown_indexes(web.indexes).items()]
        others = "what the settings do not name, pip, npm and cargo are configured for"
        said = (
            f"Commands read {', '.join(named)}; {others}."
            if named
            else ("Commands read the package indexes that pip, npm and cargo are configured for.")
        )
        checkup.fine("packages", redact(f"{said} `agiraph doctor --online` asks them."))
        return
    async for state in index_states(web.indexes, web.fetcher.policy):
        name, what = f"packages {state.kind}", redact(state.url)
        if state.fault:
            checkup.note(name, f"{what} cannot be read: {redact(state.fault)}")
        else:
            checkup.fine(name, f"{what} answers.")


async def check_extensions(checkup: Checkup) -> None:
    """Name the extensions that are faulty, have changed or are missing, and wrong secrets."""
    _secrets(checkup)
    home = checkup.settings.home
    if not home.is_dir() or home_health.why_not_writable(home):
        return  # the check of the home folder has reported this already
    given = checkup.settings.extensions
    extensions = checkup.extensions or Extensions(
        home=Home.open(checkup.settings.home), secrets=given.secrets, rules=given.rules
    )
    # What own code prints while it is imported is no part of our output.
    with redirect_stdout(sys.stderr):
        found = await extensions.listed()
    broken = [f"{one.id}: {one.summary}" for one in found if one.state in ("changed", "faulty")]
    broken += [extensions.problem] if extensions.problem else []
    broken += _missing(checkup, extensions)
    on = [one for one in found if one.state == "on"]
    if broken:
        checkup.problem(
            "own tools", f"{len(broken)} cannot be used; `agiraph tools` lists all.", *broken
        )
    elif on:
        checkup.fine(
            "own tools", f"{len(on)} enabled.", *(f"{one.id}: {one.summary}" for one in on)
        )
    _skills(checkup, extensions.home)
    if off := [one.id for one in found if one.state == "off"]:
        checkup.note(
            "own tools", f"Not enabled: {', '.join(off[:20])}. To use one: agiraph tools enable."
        )


def _skills(checkup: Checkup, home: Home) -> None:
    found = Skills(home=home).listed()
    broken = [f"{one.id}: {one.summary}" for one in found if one.state in ("changed", "faulty")]
    if broken:
        checkup.problem("skills", f"{len(broken)} cannot be used.", *broken)
    elif on := [one.id for one in found if one.state == "on"]:
        checkup.fine("skills", f"{len(on)} enabled.", *on)


def _secrets(checkup: Checkup) -> None:
    secrets = checkup.settings.secrets
    problems = [problem for name in secrets.sources if (problem := secrets.problem(name))]
    if problems:
        checkup.problem("secrets", f"{len(problems)} cannot be used.", *problems)
    elif secrets.sources:
        checkup.fine("secrets", f"{len(secrets.sources)} can be used.")


def _missing(checkup: Checkup, extensions: Extensions) -> list[str]:
    """Return what the settings name and no enabled extension declares."""
    settings, said = checkup.settings, list[str]()
    engine = settings.web.engine
    if isinstance(engine, WantedEngine) and ("engines", engine.own_name) not in extensions.declared:
        said.append(f"[search] names {engine.name}, which no enabled file in engines/ declares.")
    own = {name for kind, name in extensions.declared if kind == "tools"}
    said += [
        f"[tools.{name}] names a tool that no enabled file in tools/ declares."
        for name in settings.extensions.rules
        if name not in own
    ]
    for name, channel in settings.channels.items():
        if not isinstance(channel, WantedChannel):
            continue
        if ("channels", channel.own_name) not in extensions.declared:
            said.append(
                f"[channels.{name}] names own:{channel.own_name}, which no enabled file in "
                "channels/ declares."
            )
    return said


async def check_mcp(checkup: Checkup) -> None:
    """Say which servers can be used. With --online each of them is started and asked."""
    settings = checkup.settings
    if not settings.mcp or not settings.home.exists():
        return
    home = Home.open(settings.home)
    for name, server in settings.mcp.items():
        try:
            await _check_server(checkup, home, name, server)
        except AgiraphError as error:
            checkup.problem(f"mcp {name}", redact(str(error)))
    home.folder.close()


async def _check_server(checkup: Checkup, home: Home, name: str, server: McpServer) -> None:
    title = f"mcp {name}"
    if server.fault:
        return checkup.problem(title, f"{server.origin}: {server.description}.")
    if why := pins.unconfirmed(server, pins.load(home.folder, name)):
        return checkup.note(title, f"It {why}")
    if checkup.online:
        async with opened(checkup.settings, name) as (_, servers):
            known = await servers.look(name)
    else:
        known = pins.load(home.folder, name)
    if known is None:
        return checkup.note(title, f"Its tools are not known yet: agiraph mcp test {name}")
    if known.pending or known.gone:
        return checkup.note(title, pins.news(name, known))
    asked = "It answers" if checkup.online else "It is started when it is used"
    return checkup.fine(title, f"{asked}; {counted(len(known.usable), 'tool')}.")


@asynccontextmanager
async def opened(settings: Settings, name: str) -> AsyncGenerator[tuple[Home, McpServers]]:
    """Open the home for one server. The server is ended when the block ends."""
    if name not in settings.mcp:
        raise NotFound("MCP server", name, known="`agiraph mcp list` shows all.")
    home = Home.open(settings.home)
    rules = CommandRules.of(
        settings.limits, database_files(settings.database_url), settings.sandbox_readable
    ).confined(settings.sandbox, home.path)
    only = {name: settings.mcp[name]}
    servers = McpServers(only, home, rules, settings.web, settings.secrets)
    try:
        yield home, servers
    finally:
        await servers.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """What came of asking one index."""

    kind: str
    url: str
    """Without a user name and password."""
    fault: str = ""
    """Why it cannot be read; empty if it answers."""


async def index_states(indexes: PackageIndexes, policy: AddressPolicy) -> AsyncIterator[IndexState]:
    """Ask each index for a page and yield whether it answers. "Not found" is an answer, too."""
    python = await indexes.python_sources()
    wanted = [("python", url, f"{url.rstrip('/')}/pip/") for url in python.indexes]
    if npm := await indexes.npm_registry():
        wanted.append(("npm", npm, f"{npm.rstrip('/')}/-/ping"))
    if cargo := (await indexes.cargo_index()).removeprefix("sparse+"):
        wanted.append(("cargo", cargo, f"{cargo.rstrip('/')}/config.json"))
    upstream = Upstream(policy)
    try:
        for kind, url, page in wanted:
            shown = upstream.trust(url)
            fault = await _fault(upstream, upstream.trust(page))
            yield IndexState(kind=kind, url=shown, fault=fault)
    finally:
        await upstream.close()


async def _fault(upstream: Upstream, page: str) -> str:
    if urlsplit(page).scheme == "file":
        folder = Path(unquote(urlsplit(page).path)).parent
        return "" if folder.is_dir() else "There is no such folder."
    try:
        async with upstream.get(page) as response:
            is_there = response.status < 400 or response.status == 404
            return "" if is_there else f"It answers {response.status}."
    except Denied as denied:
        return denied.sentence
