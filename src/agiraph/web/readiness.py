"""Readiness: checks before a research job begins whether the web can be searched."""

from agiraph.web import default_engine
from agiraph.web.access import Web
from agiraph.web.open_sources import OpenEngine
from agiraph.web.search import KEYS, NO_ENGINE


async def why_no_search(web: Web) -> str:
    """Return why the web cannot be searched, and which settings help; "" if it can.

    The open sources are the default, which nobody has tried, so they are asked whether they can be
    reached. An engine that a person has chosen is not tried.
    """
    engine = default_engine.present(web).engine
    if engine is None:
        return NO_ENGINE
    if not isinstance(engine, OpenEngine) or not (why := await engine.why_unreachable()):
        return ""
    return (
        f"The web cannot be searched: no search engine is set up, and the open sources cannot be "
        f"reached ({why}). A person can set {KEYS}."
    )
