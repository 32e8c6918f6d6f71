"""Reading tools: a public reader opens the links that a thread may not open itself."""

import re
from dataclasses import replace
from string import Template
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Pending
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.domain.work import WaitingOn
from agiraph.core.domain.work_kinds import LINK_READER
from agiraph.core.prompts import prompt
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import budgets, planning
from agiraph.core.services.members import roster
from agiraph.core.store import nodes
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import tool
from agiraph.core.tools.web import addresses
from agiraph.core.tools.web.web import web_fetch, web_search
from agiraph.web import links

TITLE = "Read the links of a page"
READERS_A_TASK = 5
"""Pages to which one task may send readers: which ones it chooses tells a stranger something."""
PAGES, SEARCHES, STEPS = 8, 4, 6
"""Pages and searches of a reader, and its turns beside them."""
_PLAIN = re.compile(r"(/(?:[a-z]{1,20}|[0-9]{1,8})?(?:[._-](?:[a-z]{1,20}|[0-9]{1,8}))*)*")
"""A path of words and short numbers, as no secret link has."""


@tool(effect="transaction", delegates=True, in_sight=ON_DEMAND)
def read_links(
    tx: Tx,
    ctx: RunContext,
    url: Annotated[str, Field(min_length=1, description="A page that you have read")],
) -> Answer:
    """Have the links of a page read that you have opened, and get a report on them. A public reader
    does it: it is told the address and nothing else, so it may open whatever it likes. For links
    that you may not open yourself. Once a page.
    """
    wanted = _checked(tx, ctx, links.requested(url))
    budget = budgets.share(tx, ctx.node, turns=STEPS + PAGES + SEARCHES)
    reader = roster.hire(
        tx,
        ctx.team.id,
        name=roster.free_name(tx, ctx.team.id, "reader"),
        role="worker",
        model=ctx.agent.model,
        persistent=False,
        parent_thread_id=ctx.lease.thread_id,
    )
    node = planning.create(
        tx,
        team_id=ctx.team.id,
        task=Template(prompt("reader")).substitute(url=wanted, pages=PAGES - 1),
        title=TITLE,
        source="delegation",
        creator_id=ctx.agent.id,
        assignee_id=reader.id,
        parent_id=ctx.node.id,
        budget=replace(budget, calls={web_fetch.name: PAGES, web_search.name: SEARCHES}),
        kind=LINK_READER,
        address=wanted,
    )
    roster.set_purpose(tx, reader, node.id)
    return Pending(WaitingOn("node", node.id), f"{reader.name}: the links of a page")


def _checked(tx: Tx, ctx: RunContext, wanted: str | None) -> str:
    """Return the address; refuse one that a reader may not be told of, or that tells too much."""
    if wanted is None or not _was_read(ctx, wanted):
        raise Refused(
            "You have not opened this page. Give the exact address of a page that you have opened."
        )
    # Also those that failed: what they opened told a stranger something.
    sent = [c.address for c in nodes.children(tx, ctx.node.id) if c.kind is LINK_READER]
    if wanted in sent:
        raise Refused(
            "A reader has read its links for you. Work with the report, or ask the human."
        )
    if len(sent) >= READERS_A_TASK:
        raise Refused(
            f"A task may use {READERS_A_TASK} readers. Work with their reports, or ask the human."
        )
    match addresses.origin(tx, ctx, wanted):
        case "made_up" | "opened_before":
            # The reader could be told by a page to pass on what stands in its task.
            raise Refused(
                "No search and no page gave you this address, so a reader may not open it."
            )
        case "given" if not is_plain(wanted):
            raise Refused(
                "A person gave you this address, and it may be a secret link, so it is given to no "
                "reader. Ask the human to let you open its links."
            )
        case _:
            return wanted


def is_plain(address: str) -> bool:
    """Whether an address is made of words and short numbers, so that it is not a secret link."""
    parts = urlsplit(address)
    return not parts.query and _PLAIN.fullmatch(parts.path) is not None


def _was_read(ctx: RunContext, wanted: str) -> bool:
    """Whether this thread has opened the address with success."""
    turns = ctx.transcript.turns
    made = {turn.ref for turn in turns if turn.role == "tool" and not turn.failed}
    return any(
        call.id in made and links.requested(addresses.of_call(call)) == wanted
        for turn in turns
        for call in turn.calls
        if call.name == web_fetch.name
    )
