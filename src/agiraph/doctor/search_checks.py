"""Search checks: which search engine is in force, what it costs, and whether it answers."""

from agiraph.doctor.checkup import Checkup
from agiraph.domain.errors import Refused
from agiraph.domain.search import Engine
from agiraph.extensions.resolving import web_with_keys
from agiraph.providers.searching import VendorEngine
from agiraph.redaction import redact
from agiraph.web import access
from agiraph.web.configured import shown
from agiraph.web.open_sources import OpenEngine
from agiraph.web.search import SEARXNG_FORBIDS, SEARXNG_LINES, SETTINGS

NAME = "search"
QUERY = "wikipedia"


async def check(checkup: Checkup) -> None:
    """Say which engine searches the web and what a thousand searches cost.

    A SearXNG server is asked for JSON, since it forbids it by default. Other engines are asked with
    --online, which costs as much as one search.
    """
    web = checkup.settings.web
    if checkup.models is not None:
        web = access.present(web_with_keys(web, checkup.models))
    engine = web.engine
    if engine is None:
        return checkup.note(NAME, f"Agents cannot search the web. To let them, set {SETTINGS}.")
    said = f"{redact(shown(web))}. {_price(engine)}"
    if isinstance(engine, OpenEngine):
        said += " It finds facts and papers, and no news."
    if engine.name != "searxng" and not checkup.online:
        return checkup.fine(NAME, said)
    if isinstance(engine, OpenEngine):
        why = await access.why_no_search(web)
        return checkup.note(NAME, f"{said} {why}") if why else checkup.fine(NAME, said)
    try:
        await engine.search(QUERY, limit=1)
    except Refused as error:
        if str(error) == SEARXNG_FORBIDS:
            what = f"{said} It forbids JSON. Write into its settings.yml and restart it:"
            return checkup.problem(NAME, what, *SEARXNG_LINES)
        return checkup.problem(NAME, f"{said} It does not answer: {redact(str(error))}")
    return checkup.fine(NAME, f"{said} It answers.")


def _price(engine: Engine) -> str:
    price = engine.usd_per_1000
    if price is None:
        return "What a search costs is not known."
    # A vendor's search is a call of a model, whose tokens are paid as well.
    tokens = " and the tokens of a small model" if isinstance(engine, VendorEngine) else ""
    return f"A thousand searches cost {f'about ${price:g}' if price else 'nothing'}{tokens}."
