"""Pages: keep the text of each page that a research job reads, for quotations to be looked up."""

import hashlib
from urllib.parse import urlsplit

from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.work import WorkNode
from agiraph.core.store.rows import to_text
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.jobs import ResearchPage
from agiraph.features.research.rows import jobs as research

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
    research.keep_page(tx, page)


def address_of(url: str) -> str:
    """Return an address in the form in which two are compared.

    Scheme, `www.`, a slash at the end and the part behind `#` make no difference: models leave them
    out. If that joins two pages, the quotation still has to stand on one of them.
    """
    parts = urlsplit(url.strip() if "//" in url else f"//{url.strip()}")
    host = parts.netloc.lower().rpartition("@")[2].removeprefix("www.")
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{parts.path.rstrip('/')}{query}"
