"""Named hosts: an address that a person types lets commands of the team reach its host."""

import ipaddress
from datetime import datetime

from agiraph.domain import quotations
from agiraph.domain.events.team import GrantMade
from agiraph.domain.grants import REACH_LASTS, Grant
from agiraph.domain.ids import PersonId, TeamId, new_id
from agiraph.domain.labels import Label
from agiraph.store import grants
from agiraph.store.grants import GRANTS
from agiraph.store.tx import Tx
from agiraph.web import links

MOST_HOSTS = 20
"""Hosts that one text lets commands reach."""


def allow(
    tx: Tx, team_id: TeamId, person_id: PersonId, text: str, label: Label, *, lasts: bool = False
) -> None:
    """Let commands reach the hosts of the addresses in a person's own words, for 30 days or, for
    words that stand as long as the team (`lasts`), until the person revokes it. Words with a label
    may be somebody else's, so they allow nothing."""
    if label:
        return
    until: datetime | None = None if lasts else tx.now + REACH_LASTS
    for host in sorted(links.typed_hosts(quotations.own_words(text)))[:MOST_HOSTS]:
        if not _is_public(host) or grants.find(tx, team_id, "reach", host) is not None:
            continue
        grant = Grant(
            id=new_id("grant"),
            kind="reach",
            pattern=host,
            person_id=person_id,
            created_at=tx.now,
            team_id=team_id,
            until=until,
            is_typed=True,
        )
        GRANTS.insert(tx, grant)
        tx.emit(team_id, GrantMade(grant_id=grant.id, kind="reach", pattern=host))


def _is_public(host: str) -> bool:
    """Whether a host may be in the internet; the gate refuses any other."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_global
    except ValueError:
        return "." in host and not host.endswith((".local", ".localhost", ".internal"))
