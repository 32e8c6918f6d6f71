"""Team files: removes everything that a home holds of one team. Each step can be repeated."""

import contextlib
import sys
from collections.abc import Iterable

from agiraph.core.domain.chat import Thread
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.ids import TeamId
from agiraph.core.home.layout import Home, spool_name
from agiraph.core.home.node_folder import SCRATCH
from agiraph.faultpoints import fault

_SPOOL = "spool"


def remove(home: Home, team_id: TeamId, calls: Iterable[tuple[str, Iterable[str]]]) -> None:
    """Remove the team's folder and the output of its commands. `calls` are its threads, each with
    the ids of the calls made in it."""
    fault("fx:before:remove")
    with contextlib.suppress(NotFound):
        home.folder.remove(f"teams/{team_id}")
    fault("fx:in:remove")
    _remove_spools(home, calls)
    fault("fx:after:remove")


def remove_work(home: Home, thread: Thread, calls: Iterable[str]) -> None:
    """Remove the working files of a thread's node and the output of the thread's commands. What
    the node has published stays."""
    fault("fx:before:remove")
    with contextlib.suppress(NotFound):
        home.folder.remove(f"teams/{thread.team_id}/nodes/{thread.node_id}/{SCRATCH}")
    _remove_spools(home, [(thread.id, calls)])
    fault("fx:after:remove")


def _remove_spools(home: Home, calls: Iterable[tuple[str, Iterable[str]]]) -> None:
    known = [(thread, list(ids)) for thread, ids in calls]
    starts = tuple(f"{thread}-" for thread, _ in known)
    # A call id that is no file name is hashed together with its thread.
    hashed = {spool_name(f"{thread}-{call}") for thread, ids in known for call in ids}
    with contextlib.suppress(NotFound), home.folder.sub(_SPOOL) as spool:
        for entry in spool.list(limit=sys.maxsize):
            if entry.name.startswith(starts) or entry.name in hashed:
                spool.remove(entry.name)
