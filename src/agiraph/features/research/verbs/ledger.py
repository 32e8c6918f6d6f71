"""Ledger: keeps the pages that a research job reads, and adds evidence whose quotation stands on
one of them."""

import hashlib
import re
import unicodedata
from urllib.parse import unquote_plus, urlsplit

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import WorkNode
from agiraph.core.store.rows import to_text
from agiraph.core.store.tx import Tx
from agiraph.features.research.model import sources
from agiraph.features.research.model.jobs import (
    LONGEST_CLAIM,
    LONGEST_QUOTE,
    SHORTEST_QUOTE,
    EvidenceRow,
    ResearchJob,
    ResearchPage,
    Stance,
)
from agiraph.features.research.model.kinds import part_of
from agiraph.features.research.model.page_quotes import QuoteFound, QuoteMissing, find_quote
from agiraph.features.research.rows import evidence
from agiraph.features.research.rows import jobs as research
from agiraph.features.research.rows.evidence import EVIDENCE
from agiraph.features.research.rows.jobs import JOBS, PAGES

MOST_ENTRIES = 400
"""The most entries of one job. A model that notes more is copying whole pages."""
LONGEST_FOUND = 2 * LONGEST_QUOTE
"""The most characters of a page that a quotation with words left out may cover."""
REPEATED = (
    "Not noted: the address of this page holds the quoted words, so the page may only repeat what "
    "was asked of it. Open the page that states it, and quote that one."
)
LISTED = 10
"""How many addresses a refused reader is shown when the quotation's page was not read."""


@dataclass(frozen=True, slots=True)
class NotRead:
    """The job has read no page at the address of a quotation."""

    read: list[str]
    """The addresses that it read last."""


@dataclass(frozen=True, slots=True)
class NotOnPage:
    """The quotation does not stand on the page."""

    url: str
    nearest: str
    """The words of the page that are most like it; empty if none are."""


LookedUp = tuple[ResearchPage, QuoteFound]
"""A page, and where a quotation stands on it."""


def pages_at(tx: Tx, node: WorkNode, url: str) -> list[ResearchPage] | NotRead:
    """Return the page at an address in each version that the reader's job has read."""
    job_id = _job_of(node)
    if found := research.pages_at(tx, job_id, address_of(url)):
        return found
    return NotRead([url for url, _ in research.read_pages(tx, job_id)][-LISTED:])


def note(
    tx: Tx,
    node: WorkNode,
    call_id: str,
    looked_up: LookedUp,
    *,
    claim: str,
    url: str,
    stance: Stance,
) -> EvidenceRow:
    """Add an entry to the ledger of the job that this reader works for, and return it.

    `looked_up` are the words of the page (`look_up`), which are stored, not those of the call. A
    call that was made before and is made again after a crash adds nothing. Locks the job's row.
    """
    if (known := evidence.of_call(tx, node.id, call_id)) is not None:
        return known
    # Locked: two readers must not give the same number to two entries.
    job = JOBS.get(tx, _job_of(node), lock=True)
    if evidence.count(tx, job.id) >= MOST_ENTRIES:
        raise Refused(f"The ledger of this research is full ({MOST_ENTRIES} entries). Call done.")
    page, found = looked_up
    _check_found(found, url, page.url)
    return EVIDENCE.insert(tx, _entry(tx, job, node, call_id, page, found, claim, stance))


def _job_of(node: WorkNode) -> NodeId:
    if part_of(node) != "reader" or node.parent_id is None:
        raise Refused("Evidence is noted by the readers of a research only.")
    return node.parent_id


def check_lengths(claim: str, quote: str) -> None:
    """Refuse a claim or a quotation that is too long, or too short."""
    if len(claim) > LONGEST_CLAIM:
        raise Refused(f"A claim has at most {LONGEST_CLAIM} characters: one statement each.")
    if len(quote) > LONGEST_QUOTE:
        raise Refused(
            f"A quotation has at most {LONGEST_QUOTE} characters. Quote the sentence that shows "
            "the claim; leave words out with … if it is long."
        )
    if len(quote.strip()) < SHORTEST_QUOTE:
        raise Refused(
            f"A quotation has at least {SHORTEST_QUOTE} characters, or it shows nothing. Quote the "
            "whole sentence."
        )


def _check_found(found: QuoteFound, *urls: str) -> None:
    """Refuse words that a page may have taken from its own address, as a search page does, and a
    quotation whose words on the page are too many."""
    if len(found.text) > LONGEST_FOUND:
        raise Refused(
            f"What you quote is {len(found.text)} characters long on the page; at most "
            f"{LONGEST_FOUND} are noted. Quote the sentence that shows the claim."
        )
    if any(is_in_address(found.text, url) for url in urls):
        raise Refused(REPEATED)


def is_in_address(quote: str, url: str) -> bool:
    """Whether a quotation, or a part of one with words left out, stands in the path or query of an
    address.

    Words that hyphens join in a path do not count: many articles have their title there.
    """
    address = urlsplit(url)
    path = [unquote_plus(part) for part in address.path.split("/")]
    held = [_words(part) for part in path if " " in part.strip()]
    # Twice: a redirect may have encoded the words again.
    held.append(_words(unquote_plus(unquote_plus(address.query))))
    parts = [_words(part) for part in quote.split("…")]
    parts = [part for part in parts if len(part) >= SHORTEST_QUOTE]
    return any(f" {part} " in f" {words} " for part in parts or [_words(quote)] for words in held)


def _words(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold()))


def look_up(versions: list[ResearchPage], quote: str) -> LookedUp | NotOnPage:
    """Return the version of the page that has the quotation; the newest is searched first.

    It may take a second for a long page, so it is done in a thread, before the transaction.
    """
    nearest = ""
    for page in versions:
        match find_quote(quote, page.text):
            case QuoteFound() as found:
                return page, found
            case QuoteMissing(near):
                nearest = nearest or near
    return NotOnPage(versions[0].url, nearest)


def _entry(
    tx: Tx,
    job: ResearchJob,
    node: WorkNode,
    call_id: str,
    page: ResearchPage,
    found: QuoteFound,
    claim: str,
    stance: Stance,
) -> EvidenceRow:
    number = evidence.next_number(tx, job.id)
    subjects = () if job.brief is None else job.brief.subjects
    return EvidenceRow(
        id=f"{job.id}:{number}",
        team_id=job.team_id,
        job_id=job.id,
        number=number,
        node_id=node.id,
        call_id=call_id,
        claim=one_line(claim),
        quote=found.text,
        url=page.url,
        page_hash=page.page_hash,
        place=found.offset,
        title=page.title,
        published=page.published,
        fetched_at=page.fetched_at,
        source_class=sources.classify(page.url, subjects=subjects),
        question=number_of(job, node.id),
        stance=stance,
        label=of_page(page.url),
        checked="exact",
        created_at=tx.now,
    )


def number_of(job: ResearchJob, node_id: NodeId) -> int:
    """Return the number of the sub-question that a reader has; 0 if it has none of the plan's."""
    return next((each.number for each in job.readings if each.node_id == node_id), 0)


LONGEST_PAGE = 400_000
"""Characters of a page that are kept. A quotation from beyond them is refused."""


def keep_page(
    tx: Tx, node: WorkNode, *, url: str, title: str, text: str, published: str = ""
) -> None:
    """Keep a page that a reader of a research job has fetched.

    The same text of the same address is one row, however often it is fetched.
    """
    assert node.parent_id is not None
    # As the row will hold it: the hash and the places of quotations are about that text.
    kept = to_text(text[:LONGEST_PAGE])
    page_hash = hashlib.sha256(kept.encode()).hexdigest()[:32]
    address = address_of(url)
    identity = hashlib.sha256(f"{address}\n{page_hash}".encode()).hexdigest()[:32]
    page = ResearchPage(
        id=f"{node.parent_id}:{identity}",
        team_id=node.team_id,
        job_id=NodeId(node.parent_id),
        node_id=node.id,
        url=url,
        address=address,
        page_hash=page_hash,
        title=title,
        published=published,
        text=kept,
        fetched_at=tx.now,
    )
    PAGES.insert_if_new(tx, page)


def address_of(url: str) -> str:
    """Return an address in the form in which two are compared.

    Scheme, `www.`, a slash at the end and the part behind `#` make no difference: models leave them
    out. If that joins two pages, the quotation still has to stand on one of them.
    """
    parts = urlsplit(url.strip() if "//" in url else f"//{url.strip()}")
    host = parts.netloc.lower().rpartition("@")[2].removeprefix("www.")
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{parts.path.rstrip('/')}{query}"
