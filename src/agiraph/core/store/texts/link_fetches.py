"""Link fetches, as rows: which links threads with untrusted text in them have opened.

The choice among the sixteen links of a page can send four bits of a secret to its site. So opened
links are counted: by site and thread, by thread, and by site and day for the whole team.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.core.domain.ids import TeamId, ThreadId
from agiraph.core.domain.value import value
from agiraph.core.store.rows import Table, to_micros
from agiraph.core.store.tx import Tx

DAY = timedelta(days=1)


@value
class LinkFetch:
    id: str
    """The thread's id and the call's."""
    team_id: TeamId
    thread_id: ThreadId
    site: str
    created_at: datetime


class Limits(NamedTuple):
    """How many links are free."""

    site_and_thread: int
    thread: int
    site_and_day: int


LINK_FETCHES = Table("link_fetches", LinkFetch)


def take(
    tx: Tx, team_id: TeamId, thread_id: ThreadId, call_id: str, site: str, limits: Limits
) -> bool:
    """Count a link that is about to be opened; return False if that would exceed a limit.

    A call that was counted before, and is made again after a crash, is not counted twice. Without a
    lock: two threads at once may exceed the limit of the day by one.
    """
    identity = f"{thread_id}:{call_id}"
    if LINK_FETCHES.find(tx, identity) is not None:
        return True
    counted = tx.one(
        "select count(*) from link_fetches where thread_id = :thread_id", thread_id=thread_id
    )
    of_site = tx.one(
        "select count(*), coalesce(sum(case when thread_id = :thread_id then 1 else 0 end), 0)"
        " from link_fetches where team_id = :team_id and site = :site"
        " and (thread_id = :thread_id or created_at > :since)",
        team_id=team_id,
        thread_id=thread_id,
        site=site,
        since=to_micros(tx.now - DAY),
    )
    assert counted is not None
    assert of_site is not None
    in_day, in_thread = of_site
    if (
        counted[0] >= limits.thread
        or in_thread >= limits.site_and_thread
        or in_day >= limits.site_and_day
    ):
        return False
    made = LinkFetch(
        id=identity, team_id=team_id, thread_id=thread_id, site=site, created_at=tx.now
    )
    LINK_FETCHES.insert(tx, made)
    return True
