"""Research tools: start research in the background; what its readers note, and how they end."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done, Finished, InTransaction
from agiraph.core.domain.provenance.labels import CLEAN, Label, join, of_page
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.text.fence import enclose_foreign
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.domain.work import StopReason
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import texts
from agiraph.core.services.lifecycle import conversation
from agiraph.core.store import messages, nodes
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool, tool
from agiraph.core.tools.delegation import hirer
from agiraph.core.tools.web.web import find_in_page, web_fetch, web_search
from agiraph.features.research.model.jobs import LONGEST_CLAIM, LONGEST_QUOTE, Depth, Stance
from agiraph.features.research.verbs import ledger, starting
from agiraph.features.research.verbs.ledger import NotOnPage, NotRead
from agiraph.web.page import in_thread

SUMMARY_CHARACTERS = 4000
NOT_READ = (
    "Not noted: this research has read no page at that address. Open it with web_fetch first, and "
    "copy the words from its text. Read so far: {words}"
)
NOT_THERE = (
    "Not noted: these words are not on that page. Copy them exactly as the page has them, or note "
    "something that it does say. Nearest on it: {words}"
)
NOTHING_NEAR = (
    "Not noted: these words are not on that page, and {words} on it is like them. Quote what the "
    "page says, word for word."
)


@tool(
    effect="transaction",
    delegates=True,
    decides_work="new_work",
    in_sight=ON_DEMAND,
)
def research_start(
    tx: Tx,
    ctx: RunContext,
    goal: Annotated[str, Field(min_length=1, max_length=starting.LONGEST_GOAL)],
    depth: Annotated[
        Depth | None, Field(description="Leave out unless they say how thorough; deep costs most")
    ] = None,
    max_searches: Annotated[int | None, Field(ge=0, le=starting.MOST_SEARCHES)] = None,
    max_pages: Annotated[int | None, Field(ge=0, le=starting.MOST_PAGES)] = None,
    continues: Annotated[
        str, Field(description="Id of an ended research whose findings it goes on from")
    ] = "",
) -> Answer:
    """Start research in the background. For a question that takes several searches and pages:
    readers look into it, and a report with checked sources goes to you and to the human's inbox.
    Put the whole question into the goal, with what it is for. Do not wait for it, and do not
    research the same yourself.
    """
    starting.check_engine(ctx.web, goal)
    # In a reply the person asked for it. Elsewhere it is a part of the work, and paid from its
    # budget.
    is_reply = ctx.node.kind.answers_messages
    # The person's own question stays clean, whatever stands around it in the conversation.
    label = CLEAN if is_reply and _is_asked(tx, ctx, goal) else ctx.label
    if is_reply:
        goal, label = _with_their_words(tx, ctx, goal, label)
    node = starting.start(
        tx,
        hirer(ctx),
        goal,
        depth=depth,
        searches=max_searches,
        pages=max_pages,
        parent_id=None if is_reply else ctx.node.id,
        label=label,
        asks=is_reply,
        earlier=nodes.find(tx, ctx.team.id, continues.strip()) if continues.strip() else None,
    )
    return Done(
        f"Research has started as {node.id}. The report goes to the human's inbox when it is done; "
        "job_status tells how it stands.",
        did=Act(kind="started", about=node.id, name=f"research: {node.title}"),
    )


def _with_their_words(tx: Tx, ctx: RunContext, goal: str, label: Label) -> tuple[str, Label]:
    """Return a goal in the model's words with the person's messages behind it, and its label."""
    asked = messages.to_answer(tx, ctx.node.id)
    if not (said := conversation.unsaid(tx, goal, asked, ctx.node.id)):
        return goal, label
    whole = "\n\n".join([goal, *said])
    return texts.truncate(whole, starting.LONGEST_GOAL), label | join(m.label for m in asked)


def _is_asked(tx: Tx, ctx: RunContext, goal: str) -> bool:
    """Whether the goal is a whole message that this reply answers, in the person's own words."""
    asked = messages.to_answer(tx, ctx.node.id)
    return any(m.text.split() == goal.split() for m in asked if not m.label)


@tool(effect="repeatable", roles=frozenset())
async def note_evidence(
    ctx: RunContext,
    claim: Annotated[
        str, Field(min_length=1, description=f"One statement, at most {LONGEST_CLAIM} characters")
    ],
    quote: Annotated[
        str,
        Field(
            min_length=1,
            description=f"The page's own words that show it, at most {LONGEST_QUOTE} characters",
        ),
    ],
    url: Annotated[str, Field(min_length=1, description="The page, as you fetched it")],
    stance: Annotated[
        Stance, Field(description="Whether the words support or contradict the claim")
    ] = "supports",
) -> Answer | InTransaction:
    """Note one finding with the words of the page that show it. Only what is noted gets into the
    report. Copy the quotation from the page's text, word for word; it is compared with the page.
    """
    ledger.check_lengths(claim, quote)
    pages = await ctx.store.read(ledger.pages_at, ctx.node, url)
    if isinstance(pages, NotRead):
        read = pages.read
        return _refuse(ctx, NOT_READ, "\n".join(read), join(map(of_page, read)))
    found = await in_thread(ledger.look_up, pages, quote)
    if isinstance(found, NotOnPage):
        text = NOT_THERE if found.nearest else NOTHING_NEAR
        return _refuse(ctx, text, found.nearest, of_page(found.url))

    def note(tx: Tx) -> Done:
        call = ctx.current_call_id
        noted = ledger.note(tx, ctx.node, call, found, claim=claim, url=url, stance=stance)
        return Done(f"Noted as e{noted.number}.")

    return InTransaction(note, _raise)


async def _raise(refusal: Refused) -> Done:
    raise refusal


def _refuse(ctx: RunContext, text: str, words: str, label: Label) -> Done:
    """Return a refusal with words of pages in a fence: another reader may have fetched them."""
    if not words:
        return Done(text.format(words="nothing"), failed=True)
    shown = enclose_foreign(words, thread=ctx.lease.thread_id, source=ctx.describe(label))
    return Done(text.format(words=f"\n{shown}"), failed=True, label=label, is_fenced=True)


@tool(effect="transaction", roles=frozenset(), ends_node=True, counts_as_work=False)
def done(
    tx: Tx,
    ctx: RunContext,
    summary: Annotated[
        str,
        Field(
            max_length=SUMMARY_CHARACTERS,
            description="What you could not find out, and where you looked",
        ),
    ] = "",
) -> Answer:
    """End your reading. Call it alone, when your question is answered by noted evidence, or when
    two searches in a row brought nothing new.
    """
    return Done("Ended.", Finished(summary.strip() or "Done.", StopReason.PUBLISHED))


TOOLS = (research_start, note_evidence, done)
REPLY_TOOLS = (research_start,)
READER: Mapping[str, Tool] = {
    tool.name: tool for tool in (web_search, web_fetch, find_in_page, note_evidence, done)
}
"""The tools of an agent that reads pages for a research job. They replace the tools that the agent
has for other work."""
