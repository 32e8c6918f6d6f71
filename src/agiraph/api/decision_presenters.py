"""Decision presenters: convert grants and digests to the views that clients get."""

from datetime import datetime

from agiraph.api.decision_views import DigestEntry, DigestGroup, DigestView, GrantView
from agiraph.api.views import GrantOffer
from agiraph.domain.digest import Digest, Entry
from agiraph.domain.grants import Grant
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

PREVIEW = 200
"""Characters of an entry that are shown unless its exact words are asked for."""


def grant_view(grant: Grant, now: datetime) -> GrantView:
    names = [name for name in GrantView.model_fields if name != "is_in_force"]
    shown = {name: getattr(grant, name) for name in names}
    return GrantView(**shown, is_in_force=grant.is_in_force(now))


def digest_view(tx: Tx, found: Digest, *, words: bool) -> DigestView:
    """Return a digest, with the exact words of its entries or with their beginnings."""
    return DigestView(
        team_id=found.team_id,
        team_name=TEAMS.get(tx, found.team_id).name,
        as_of=found.as_of,
        groups=[
            DigestGroup(kind=kind, source=source, ids=ids)
            for (kind, source), ids in found.groups.items()
        ],
        entries=[_entry_view(entry, words=words) for entry in found.entries],
    )


def _entry_view(entry: Entry, *, words: bool) -> DigestEntry:
    is_cut = not words and len(entry.text) > PREVIEW
    offered = None
    if entry.always is not None and entry.pattern is not None:
        offered = GrantOffer(kind=entry.always, pattern=entry.pattern)
    return DigestEntry(
        id=entry.id,
        kind=entry.kind,
        title=entry.title,
        text=f"{entry.text[:PREVIEW]}…" if is_cut else entry.text,
        is_cut=is_cut,
        source=entry.source,
        agent_id=entry.agent_id,
        created_at=entry.created_at,
        is_waited_for=entry.is_waited_for,
        always=offered,
    )
