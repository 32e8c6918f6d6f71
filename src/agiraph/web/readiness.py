"""Readiness: whether the web can be searched at all, asked before a research begins."""

from agiraph.web.access import Web
from agiraph.web.open_sources import OpenEngine
from agiraph.web.search import KEYS, NO_ENGINE


async def why_no_search(web: Web) -> str:
    """Return why nothing can be searched, with the settings that help; "" if it can.

    Without an engine the answer is known. The open sources are asked whether they can be reached:
    they are nobody's choice, so nobody has tried them. An engine that a person chose is taken at
    their word.
    """
    if web.engine is None:
        return NO_ENGINE
    if not isinstance(web.engine, OpenEngine) or not (why := await web.engine.why_unreachable()):
        return ""
    return (
        f"The web cannot be searched: no search engine is set up, and the open sources cannot be "
        f"reached ({why}). A person can set {KEYS}."
    )
