"""Rendering: converts a fetched page to text, in a browser first if scripts make its content."""

from dataclasses import replace

from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.run_context import RunContext
from agiraph.core.tools.commands.command_gate import CommandGate
from agiraph.sandbox import browser
from agiraph.sandbox.gate.rules import Rules
from agiraph.sandbox.parsing import Parser
from agiraph.web import page as web_page
from agiraph.web.fetch import Fetched
from agiraph.web.page import NoText, WebPage
from agiraph.web.pdf_page import PageRange


async def read(
    ctx: RunContext, fetched: Fetched, wanted: PageRange, *, may_render: bool
) -> tuple[WebPage, Label]:
    """Return the page as text, and the label of other hosts from which a part of it may come.

    `may_render`: whether the page's scripts may run and reach other hosts.
    """
    parser = Parser.of_team(ctx.command_rules, ctx.team.id)
    try:
        page = await web_page.read(fetched, parser, wanted)
        failure = None
    except NoText as error:
        page, failure = None, error
    if (page is None or page.is_bare) and may_render and browser.can_show(parser.confinement):
        shown, label = await _rendered(ctx, fetched, parser)
        if shown is not None and (page is None or len(shown.text) > len(page.text)):
            return shown, label
    if page is None:
        assert failure is not None
        raise failure
    return page, CLEAN


async def _rendered(
    ctx: RunContext, fetched: Fetched, parser: Parser
) -> tuple[WebPage | None, Label]:
    """Return the page as a browser renders it, and the label of all hosts that the browser reached.

    The browser is given nothing but the page's address, so it may reach every public host. The gate
    checks each address and labels the thread with each host.
    """
    gate = CommandGate(ctx, Rules(network="open"), call_id=ctx.current_call_id, command=fetched.url)
    assert gate.serve is not None
    try:
        html = await browser.show(
            fetched.url, gate.serve, confinement=parser.confinement, team_id=parser.team_id
        )
    finally:
        await gate.close()
    try:
        seen = replace(fetched, body=html, media_type="text/html", charset="utf-8")
        return await web_page.read(seen, parser), gate.label
    except NoText:
        return None, gate.label
