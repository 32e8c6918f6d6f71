"""Package checks: which indexes commands get packages from, and whether they answer."""

from agiraph.doctor.checkup import Checkup
from agiraph.redaction import redact
from agiraph.web.configured import shown_indexes
from agiraph.web.gate import index_check

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
    async for state in index_check.check(web.indexes, web.fetcher.policy):
        name, what = f"{NAME} {state.kind}", redact(state.url)
        if state.fault:
            checkup.note(name, f"{what} cannot be read: {redact(state.fault)}")
        else:
            checkup.fine(name, f"{what} answers.")
