"""Own notices: tells a person that a file or skill of theirs is off now, once for each change."""

import hashlib

from agiraph.extensions.notices import Notice
from agiraph.run_context import RunContext
from agiraph.services.mail.bus import report_once
from agiraph.store.tx import Tx


async def tell(ctx: RunContext, notices: tuple[Notice, ...]) -> None:
    """Put these notices into the inbox of the person that the node works for."""
    if notices:
        await ctx.store.write(_tell, ctx, notices)


def _tell(tx: Tx, ctx: RunContext, notices: tuple[Notice, ...]) -> None:
    for notice in notices:
        # Its key is the change itself: after a restart it is found again, and not sent again.
        change = hashlib.sha256(f"{notice.id}\n{notice.sha256}\n{notice.text}".encode())
        key = f"own:{change.hexdigest()[:24]}"
        report_once(tx, ctx.node, key=key, title=f"{notice.id} is off", text=notice.text)
