"""Retention: removes the turns of threads that were closed long ago.

Results, published files, messages, events, costs and what was learned stay. `begin` marks a thread,
so that nothing can go on in it; then `runtime.retention` removes files, and `finish` the turns. A
crash in between leaves the mark and the turns, and every step can be repeated.
"""

from datetime import datetime

from agiraph.domain.chat import Thread
from agiraph.store import deletions, threads
from agiraph.store.threads import THREADS
from agiraph.store.tx import Tx


def begin(tx: Tx, before: datetime, *, limit: int) -> list[Thread]:
    """Mark threads that were closed before that moment, and return them."""
    marked: list[Thread] = []
    for found in threads.closed_before(tx, before, limit=limit):
        # The lock that `leases.reopen` takes: a thread goes on, or its turns are removed.
        thread = THREADS.get(tx, found.id, lock=True)
        if thread.closed_at is None or thread.closed_at >= before or thread.pruned_at is not None:
            continue
        # No reflection begins on a thread without turns.
        harvested_at = thread.harvested_at or tx.now
        THREADS.update(tx, thread.id, pruned_at=tx.now, harvested_at=harvested_at)
        marked.append(thread)
    return marked


def unfinished(tx: Tx) -> list[Thread]:
    """Return the marked threads whose turns are still there."""
    return threads.partly_pruned(tx)


def calls(tx: Tx, thread: Thread) -> list[str]:
    """Return the ids of all tool calls in a thread: they name the folders of their output."""
    number = threads.number_of(tx, thread.id)
    ids: list[str] = []
    after = 0
    while page := deletions.calls(tx, number, after=after):
        ids += [call for _, made in page for call in made]
        after = page[-1][0]
    return ids


def finish(tx: Tx, thread: Thread) -> None:
    """Remove the turns of a marked thread."""
    threads.drop_turns(tx, thread.id)
