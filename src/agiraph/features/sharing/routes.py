"""Sharing routes: make, list and revoke links to a report, and the page that such a link opens."""

import asyncio
import contextlib
import time
from datetime import timedelta
from typing import Literal

from starlette.responses import HTMLResponse

from agiraph.api.access_control import TokenBucket
from agiraph.api.deps import ApiDep, CameOverHttps, HttpsOrigin, PersonDep
from agiraph.api.feature_views.sharing import MadeShareView, SharesView, ShareView
from agiraph.api.routing import Body, Router
from agiraph.api.web_ui import PAGE_HEADERS
from agiraph.core.domain.errors import Refused, StoreUnavailable
from agiraph.core.domain.ids import NodeId
from agiraph.core.home.node_folder import PUBLISHED
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.features.sharing import page, rows, verbs
from agiraph.features.sharing.rows import SharedReport

router: Router = Router("results")
pages: Router = Router(prefix="")

OPENS_PER_SECOND, OPENS_AT_ONCE = 2.0, 60.0
"""How often one link is opened. Each time makes a page, and counts it in the database."""
MOST_BYTES = 4 * 2**20
_TO_SET = (
    "Name `certificate` and `key`, or the https address of your reverse `proxy`, under `[server]` "
    "in `agiraph.toml`."
)
WHY_OFF = f"Reports are shared over https only, and this server has no https address. {_TO_SET}"
NOT_HTTPS = (
    "Shared reports are shown over https only: open the link with its https address. If this is "
    f"it, the server does not know so. {_TO_SET} A proxy has to pass on the Host header."
)
GONE = "There is nothing at this address. A link to a report works for a limited time only."
BUSY = "This report is being opened very often. Wait a minute and try again."
_HEADERS = {
    **PAGE_HEADERS,
    # Nothing runs and nothing is loaded, whatever a report holds.
    "Content-Security-Policy": (
        f"default-src 'none'; style-src '{page.STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; sandbox allow-popups allow-popups-to-escape-sandbox"
    ),
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}


class NewShare(Body, example={"days": 7}):
    days: Literal[1, 7, 30] = 7


@router.write("POST", "/nodes/{node}/shares", 404, 409, status=201)
def share(
    tx: Tx, node: str, body: NewShare, person: PersonDep, origin: HttpsOrigin
) -> MadeShareView:
    """Make a link by which others read the report of this work, and nothing else."""
    if not origin:
        raise Refused(WHY_OFF)
    made, secret = verbs.make(tx, NodeId(node), person, life=timedelta(days=body.days))
    return MadeShareView.of(made, url=f"{origin}/shared/{secret}")


@router.read("/nodes/{node}/shares", 404)
def list_shares(tx: Tx, node: str, origin: HttpsOrigin) -> SharesView:
    """List the links to a report that work now."""
    NODES.get(tx, node)
    found = [ShareView.of(one) for one in rows.live(tx, NodeId(node))]
    return SharesView(why_off="" if origin else WHY_OFF, shares=found)


@router.write("DELETE", "/nodes/{node}/shares/{share}", 404, status=204)
def revoke_share(tx: Tx, node: str, share: str) -> None:
    """Make a link dead at once."""
    verbs.revoke(tx, NodeId(node), share)


@pages.get("/shared/{secret:path}")
async def read_shared(secret: str, api: ApiDep, is_https: CameOverHttps) -> HTMLResponse:
    """Show the report of a link. It needs no session, and gives none."""
    if not is_https:
        return _message(403, NOT_HTTPS)
    found = await api.store.read(rows.shown_by, secret)
    if found is None:
        return _message(404, GONE)
    bucket = api.access.buckets.setdefault(
        found.share.id, TokenBucket(OPENS_AT_ONCE, time.monotonic())
    )
    if bucket.take(time.monotonic(), rate=OPENS_PER_SECOND, most=OPENS_AT_ONCE):
        return _message(429, BUSY)
    made = await asyncio.to_thread(_page, api, found)
    # A full disk must not keep readers out.
    with contextlib.suppress(StoreUnavailable):
        await api.store.write(verbs.note_open, found.share.id)
    return HTMLResponse(made, headers=_HEADERS)


def _message(status: int, said: str) -> HTMLResponse:
    return HTMLResponse(page.message(said), status, headers=_HEADERS)


def _page(api: ApiDep, found: SharedReport) -> str:
    """Return the page of a report, with the quotations that it has published."""
    files: dict[str, bytes] = {}
    with api.home.team(found.node.team_id).folder as folder:
        for name in page.QUOTATION_FILES & found.node.manifest.keys():
            path = f"nodes/{found.node.id}/{PUBLISHED}/{name}"
            with contextlib.suppress(Refused):
                files[name] = folder.read(path, limit=MOST_BYTES)
    return page.of_report(found, files)
