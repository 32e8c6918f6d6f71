"""Team hosts: which hosts commands of a team may reach because a person typed an address, and which
they have reached.
"""

import ipaddress
from collections.abc import Callable
from datetime import datetime
from functools import partial

from agiraph.core.domain.agents import Team
from agiraph.core.domain.chat import Lease
from agiraph.core.domain.events.work import NetworkReached, NetworkRefused
from agiraph.core.domain.ids import PersonId, TeamId, new_id
from agiraph.core.domain.provenance.grants import REACH_LASTS, Grant
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.text import quotations
from agiraph.core.services.board import labels, requests
from agiraph.core.store import grants, messages, threads
from agiraph.core.store.tx import Tx
from agiraph.web import links

MOST_HOSTS = 20
"""Hosts that one text lets commands reach."""
MAX_MESSAGES = 200
"""Messages of persons that are searched for an address, newest first."""
COMMAND = "bash"
"""The tool that events of grants name."""


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
        requests.record_grant(tx, grant)


def was_named(tx: Tx, team_id: TeamId, wanted: str) -> bool:
    """Whether a person of the team has written this address (in its requested form) in their own
    words, to anybody."""
    said = messages.from_people(tx, team_id, limit=MAX_MESSAGES)
    named = [m for m in said if links.holds(quotations.own_words(m.text), wanted)]
    return any(not labels.is_of_client(tx, m) for m in named)


def is_behind(label: Label, host: str) -> bool:
    """Whether words with this label may come from a page of the site of this host."""
    pages = [s.removeprefix("page:") for s in label.sources if s.startswith("page:")]
    # A label names eight sources and counts the others.
    return label.others > 0 or links.site_of(host) in {links.site_of(page) for page in pages}


def without_links(tx: Tx, team: Team, label: Label) -> Callable[[str], str]:
    """Return what writes words with this label for a channel: without links, except the addresses
    that a person wrote and those of hosts that a person has granted. A host whose address they only
    wrote stays, too, unless the words may come from there."""
    held = [g for g in grants.in_force(tx, team.id) if g.kind in ("read", "reach")]
    held = [g for g in held if not (g.is_typed and is_behind(label, g.pattern))]
    people = messages.from_people(tx, team.id, limit=MAX_MESSAGES)
    own = [quotations.own_words(m.text) for m in people if not labels.is_of_client(tx, m)]
    named = {links.requested(a) for text in (team.goal, *own) for a in links.in_text(text)}

    def is_allowed(host: str) -> bool:
        return any(grant.allows(grant.kind, host, now=tx.now) for grant in held)

    def is_named(address: str) -> bool:
        return (wanted := links.requested(address)) is not None and wanted in named

    return partial(links.without_links, is_allowed=is_allowed, is_named=is_named)


def _is_public(host: str) -> bool:
    """Whether a host may be in the internet; the gate refuses any other."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_global
    except ValueError:
        return "." in host and not host.endswith((".local", ".localhost", ".internal"))


def record(tx: Tx, lease: Lease, *, call_id: str, host: str, use: str, label: Label) -> None:
    """Record that a command reaches a host, and label its thread; raise `Fenced` for a stale lease.

    The gate calls this before it sends anything: after a crash the thread is labelled although the
    command has no answer, and so are the files that the command has written.
    """
    threads.check_lease(tx, lease)  # also locks the row, so that no other label is lost
    grant = _grant_for(tx, lease, use, host)
    requests.count_use(tx, lease, grant, call_id=call_id, tool=COMMAND)
    reached = NetworkReached(
        node_id=lease.node_id,
        call_id=call_id,
        host=host,
        use=use,
        grant_id=None if grant is None else grant.id,
    )
    tx.emit(lease.team_id, reached)
    if label:
        threads.add_label(tx, lease.thread_id, label)


def record_refusals(tx: Tx, lease: Lease, *, call_id: str, sentences: list[str]) -> None:
    """Record what the gate refused a command."""
    refused = NetworkRefused(node_id=lease.node_id, call_id=call_id, sentences=sentences)
    tx.emit(lease.team_id, refused)


def _grant_for(tx: Tx, lease: Lease, use: str, host: str) -> Grant | None:
    """Return the grant by which a host is reached; None for a host that needs none."""
    if use == "packages":
        return None
    reach = grants.find(tx, lease.team_id, "reach", host)
    return reach or (grants.find(tx, lease.team_id, "read", host) if use == "git" else None)
