"""Surroundings: the checks of search, packages and secrets, and those of features."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.features import brought
from agiraph.core.domain.records.search import Engine
from agiraph.core.domain.value import dataclass
from agiraph.doctor.checkup import Checkup
from agiraph.models.searching import VendorEngine, web_with_keys
from agiraph.redaction import redact
from agiraph.sandbox.gate.indexes import PackageIndexes
from agiraph.sandbox.gate.rules import Denied
from agiraph.sandbox.gate.upstream import Upstream
from agiraph.web import access
from agiraph.web.addresses import AddressPolicy
from agiraph.web.configured import shown, shown_indexes
from agiraph.web.open_sources import OpenEngine
from agiraph.web.search import SEARXNG_FORBIDS, SEARXNG_LINES, SETTINGS


async def check(checkup: Checkup) -> None:
    """Check what agents use besides models. Without `online`, only the home is looked at."""
    await check_search(checkup)
    await check_packages(checkup)
    check_secrets(checkup)
    for looks in brought("checks"):
        await looks(checkup)


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


def check_secrets(checkup: Checkup) -> None:
    """Say which secrets cannot be used."""
    secrets = checkup.settings.secrets
    problems = [problem for name in secrets.sources if (problem := secrets.problem(name))]
    if problems:
        checkup.problem("secrets", f"{len(problems)} cannot be used.", *problems)
    elif secrets.sources:
        checkup.fine("secrets", f"{len(secrets.sources)} can be used.")


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
