"""Reading: pages as `web_fetch` reads them, without a team."""

from agiraph.core.domain.ids import TeamId
from agiraph.sandbox import levels
from agiraph.sandbox.parsing import Parser
from agiraph.web import page as pages
from agiraph.web.fetch import Fetched
from agiraph.web.page import WebPage
from agiraph.web.pdf_page import ALL, PageRange


def parser() -> Parser:
    return Parser(confinement=levels.choose(), team_id=TeamId("t_reader"))


async def read(fetched: Fetched, wanted: PageRange = ALL) -> WebPage:
    return await pages.read(fetched, parser(), wanted)
