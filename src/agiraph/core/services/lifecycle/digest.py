"""Digest: lists what a person may decide on in a team, and applies their decisions on many entries
at once.

It is a query over open requests, entries of features such as unverified facts, triggers with
untrusted text and the uses of grants. "Confirm all" covers what was learned, notes and triggers.
Each way out is decided on by itself, because it may send the team's data to somebody.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.ids import SYSTEM, MessageId, PersonId, TeamId, TriggerId
from agiraph.core.domain.messages import Draft, Message
from agiraph.core.domain.provenance.grants import Grant
from agiraph.core.domain.records.digest import (
    COVERED,
    Decisions,
    Digest,
    Entry,
    EntryDecision,
)
from agiraph.core.domain.text.plurals import counted, times
from agiraph.core.domain.waits import Timer, WaitingOn
from agiraph.core.services.board import requests
from agiraph.core.services.board.feature_verbs import find_verbs
from agiraph.core.services.lifecycle import answers
from agiraph.core.services.mail import bus, deliveries, inbox
from agiraph.core.services.triggers import definitions
from agiraph.core.store import grants as grant_rows
from agiraph.core.store import messages, triggers, waits
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.rows import to_json
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.texts import file_labels
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx

BATCH = timedelta(hours=1)
"""How long a first entry waits for others before the owner is notified."""
EVERY = timedelta(days=1)
"""The least time between two notifications about the digest of a team."""
USES_FOR = timedelta(days=7)
"""How long the digest shows that a grant was used."""
MOST_IDS = 1000
WHICH_DIGEST = (
    '"all" is what you have read: send the `as_of` of the digest that you were shown, or name the '
    "entries by their ids."
)
A_WAY_OUT = (
    "{id} asks for a way out, which is never confirmed with others: read the call and answer it "
    "by itself (agiraph answer {id} approve)."
)
ONE_FILE = "A file is confirmed by itself, after it was read."
NOTICE = (
    "{counts} in team {team!r}. Nothing waits for you meanwhile. Read and decide: agiraph inbox "
    "--digest"
)
_WORDS = {
    "ask": ("request", "requests"),
    "pending": ("pending note", "pending notes"),
    "unverified": ("unverified fact or note", "unverified facts and notes"),
    "file": ("file with untrusted text", "files with untrusted text"),
    "trigger": ("trigger with untrusted text", "triggers with untrusted text"),
    "use": ("grant in use", "grants in use"),
}


def of_team(tx: Tx, team_id: TeamId, *, person_id: PersonId) -> Digest:
    """Return the digest of a team: requests first, then entries of features, triggers and
    uses of grants."""
    entries = [
        *(_of_ask(tx, m) for m in messages.open_asks(tx, team_id) if m.recipient == person_id),
        *(entry for verbs in find_verbs() for entry in verbs.entries(tx, team_id)),
        *(
            Entry(
                id=trigger.id,
                kind="trigger",
                title=f"{trigger.type} trigger, next {_moment(trigger.due_at)}",
                text=f"{to_json(trigger.payload)} {trigger.type} {to_json(trigger.config)}",
                source=str(trigger.label),
                created_at=trigger.created_at,
                agent_id=trigger.agent_id,
            )
            for trigger in triggers.labelled(tx, team_id)
            if trigger.confirmed_at is None
        ),
        *(_of_use(g) for g in grant_rows.listed(tx, team_id) if _is_recent(g, tx.now)),
    ]
    return Digest(team_id=team_id, as_of=tx.now, entries=tuple(entries))


def _of_ask(tx: Tx, request: Message) -> Entry:
    assert request.call is not None
    offered = requests.offer(request)
    if request.topic == "rerun":
        why = "its run was interrupted"
    else:
        why = "a rule of the team asks" if request.way_out is None else request.way_out.why
    return Entry(
        id=request.id,
        kind="ask",
        title=f"{request.call.name}: {why}",
        text=f"{request.call.name} {to_json(request.call.arguments)}",
        source=str(request.label) if request.label else "",
        created_at=request.created_at,
        agent_id=request.sender,
        is_waited_for=bool(waits.on(tx, WaitingOn("approval", request.id))),
        always=None if offered is None else offered[0],
        pattern=None if offered is None else offered[1],
    )


def _of_use(grant: Grant) -> Entry:
    return Entry(
        id=grant.id,
        kind="use",
        title=f"{grant.kind} used {times(grant.used)}, last {_moment(grant.used_at)}",
        text=grant.pattern,
        source="",
        created_at=grant.used_at or grant.created_at,
    )


def _is_recent(grant: Grant, now: datetime) -> bool:
    if grant.used_at is None or grant.revoked_at is not None:
        return False
    is_over = grant.until is not None and grant.until <= now
    return grant.used_at > now - USES_FOR and not is_over


def _moment(moment: datetime | None) -> str:
    return "when its event comes" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def decide(
    tx: Tx,
    decisions: Decisions,
    *,
    person_id: PersonId,
    team_ids: Sequence[TeamId],
    as_of: datetime | None = None,
) -> list[str]:
    """Apply a person's decisions, all or none, and return the ids that they decided on.

    "All" means what the digest of the time `as_of` has shown the person, and nothing that came
    later; without that time it is refused.
    """
    confirm = decisions.confirm
    if confirm == "all":
        if as_of is None:
            raise Refused(WHICH_DIGEST)
        confirm = _everything(tx, team_ids, person_id=person_id, as_of=as_of)
    given = (*confirm, *decisions.reject, *decisions.always, *decisions.stop)
    if len(given) > MOST_IDS and decisions.confirm != "all":
        raise Refused(f"Decide on at most {MOST_IDS:,} entries at once, not on {len(given):,}.")
    if len(set(given)) != len(given):
        raise Refused("An entry is named twice; decide once on each.")
    for identity in confirm:
        _confirm(tx, identity, person_id)
    for identity in decisions.reject:
        _reject(tx, identity, person_id)
    for identity in decisions.always:
        inbox.item(tx, person_id, MessageId(identity))
        # The grant for one request may have approved another of them.
        if MESSAGES.get(tx, identity).answered_at is None:
            answers.answer_question(
                tx,
                MessageId(identity),
                "",
                person_id=person_id,
                decision="approve",
                always=True,
            )
    for identity in decisions.stop:
        definitions.cancel(tx, TriggerId(identity))
    return list(given)


def _everything(
    tx: Tx, team_ids: Sequence[TeamId], *, person_id: PersonId, as_of: datetime
) -> tuple[str, ...]:
    """Return the ids of the knowledge, notes and triggers that the digests had at this time; never
    of a way out."""
    return tuple(
        entry.id
        for team_id in team_ids
        for entry in of_team(tx, team_id, person_id=person_id).entries
        if entry.kind in COVERED and entry.created_at <= as_of
    )


def _confirm(tx: Tx, identity: str, person_id: PersonId) -> None:
    if identity.startswith("msg_"):
        raise Refused(A_WAY_OUT.format(id=identity))
    if TRIGGERS.find(tx, identity) is not None:
        definitions.confirm(tx, TriggerId(identity))
    else:
        _decide(tx, identity, person_id, confirms=True)


def _decide(tx: Tx, identity: str, person_id: PersonId, *, confirms: bool) -> None:
    """Have an entry confirmed or rejected by the feature that has listed it."""
    verbs = find_verbs()
    if not any(v.decide(tx, identity, confirms=confirms, person_id=person_id) for v in verbs):
        raise NotFound("entry", identity)


def _reject(tx: Tx, identity: str, person_id: PersonId) -> None:
    if not identity.startswith("msg_"):
        return _decide(tx, identity, person_id, confirms=False)
    inbox.item(tx, person_id, MessageId(identity))
    answers.answer_question(tx, MessageId(identity), "", person_id=person_id, decision="deny")


def decide_one(tx: Tx, identity: str, decision: EntryDecision, *, person_id: PersonId) -> None:
    """Confirm, reject or stop one entry that was selected with others; never a request."""
    if identity.startswith("msg_"):
        raise Refused(A_WAY_OUT.format(id=identity))
    if identity.startswith(file_labels.PREFIX):
        raise Refused(ONE_FILE)
    match decision:
        case "confirm":
            _confirm(tx, identity, person_id)
        case "reject":
            _reject(tx, identity, person_id)
        case "stop":
            definitions.cancel(tx, TriggerId(identity))


def schedule(tx: Tx, team_id: TeamId) -> None:
    """Set the timer that notifies the owner of the digest, at most once a day."""
    if waits.is_set(tx, Timer("digest", team_id)):
        return
    [last] = messages.about(tx, "digest", team_id)[-1:] or [None]
    due = tx.now + BATCH if last is None else max(tx.now + BATCH, last.created_at + EVERY)
    waits.set_timer(tx, Timer("digest", team_id), due)


def notify(tx: Tx, team_id: TeamId) -> None:
    """Tell the owner how much the digest has, outside of quiet hours.

    There is one such item in the inbox for each team: the next notice takes its place.
    """
    team = TEAMS.get(tx, team_id, lock=True)
    if (end := deliveries.end_of_quiet(team, tx.now)) is not None:
        waits.set_timer(tx, Timer("digest", team_id), end)
        return
    found = of_team(tx, team_id, person_id=team.owner_id)
    waiting = [e for e in found.entries if e.kind != "use" and not e.is_waited_for]
    if not waiting:
        return
    text = NOTICE.format(counts=_counts(waiting), team=team.name)
    [last] = messages.about(tx, "digest", team_id)[-1:] or [None]
    if last is None:
        bus.send(
            tx,
            Draft(
                team_id=team_id,
                sender=SYSTEM,
                recipient=team.owner_id,
                kind="report",
                title="Digest",
                text=text,
                topic="digest",
                ref=team_id,
            ),
            refusable=False,
        )
        return
    seq = messages.next_seq(tx, team_id, team.owner_id)
    # Shown again as unread, because the person may have archived or snoozed the last notice.
    in_sight = {"seen_at": None, "archived_at": None, "snoozed_until": None}
    MESSAGES.update(tx, last.id, text=text, seq=seq, created_at=tx.now, **in_sight)
    deliveries.queue(tx, MESSAGES.get(tx, last.id))


def _counts(entries: Sequence[Entry]) -> str:
    parts: list[str] = []
    for kind, (one, many) in _WORDS.items():
        if count := sum(entry.kind == kind for entry in entries):
            parts.append(counted(count, one, many))
    return ", ".join(parts)
