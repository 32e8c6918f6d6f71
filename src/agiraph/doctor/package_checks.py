"""Package checks: which indexes commands get packages from, and whether they answer."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agiraph.doctor.checkup import Checkup
from agiraph.redaction import redact
from agiraph.web.addresses import AddressPolicy
from agiraph.web.configured import shown_indexes
from agiraph.web.gate.indexes import PackageIndexes
from agiraph.web.gate.rules import Denied
from agiraph.web.gate.upstream import Upstream

NAME = "packages"


async def check(checkup: Checkup) -> None:
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
        checkup.fine(NAME, redact(f"{said} `agiraph doctor --online` asks them."))
        return
    async for state in index_states(web.indexes, web.fetcher.policy):
        name, what = f"{NAME} {state.kind}", redact(state.url)
        if state.fault:
            checkup.note(name, f"{what} cannot be read: {redact(state.fault)}")
        else:
            checkup.fine(name, f"{what} answers.")


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
