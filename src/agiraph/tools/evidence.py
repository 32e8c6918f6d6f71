"""Evidence tools: what a reader of a research job notes, and how it ends."""

from typing import Annotated

from pydantic import Field

from agiraph.domain.errors import Refused
from agiraph.domain.evidence import LONGEST_CLAIM, LONGEST_QUOTE, Stance
from agiraph.domain.fence import enclose_foreign
from agiraph.domain.labels import Label, join, of_page
from agiraph.domain.outcomes import Answer, Done, Finished, InTransaction
from agiraph.domain.work import StopReason
from agiraph.run_context import RunContext
from agiraph.services.research import ledger
from agiraph.services.research.ledger import NotOnPage, NotRead
from agiraph.store.tx import Tx
from agiraph.tools.base import tool
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
        given = {"claim": claim, "url": url, "stance": stance}
        noted = ledger.note(tx, ctx.node, ctx.current_call_id, found, **given)
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
