"""Digest: lists what a person may decide on in a team, and applies their decisions on many entries
at once.

It is a query over open requests, entries of features such as unverified facts, triggers with
untrusted text and the uses of grants. "Confirm all" covers what was learned, notes and triggers.
Each way out is decided on by itself, because it may send the team's data to somebody.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from agiraph.core.domain.agents import TeamStatus
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.ids import SYSTEM, MessageId, PersonId, TeamId, TriggerId
from agiraph.core.domain.messages import Draft, Message
from agiraph.core.domain.records.digest import (
    COVERED,
    Decisions,
    Digest,
    EndedGoal,
    Entry,
    EntryDecision,
    EntryKind,
)
from agiraph.core.domain.text.plurals import counted, times
from agiraph.core.domain.work import Timer, WaitingOn
from agiraph.core.services.board import requests
from agiraph.core.services.board.feature_verbs import find_verbs
from agiraph.core.services.lifecycle import answers
from agiraph.core.services.mail import bus, deliveries, inbox
from agiraph.core.services.triggers import definitions
from agiraph.core.store import grants as grant_rows
from agiraph.core.store import messages, nodes, triggers, waits
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.rows import to_json
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.texts import file_labels
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx

Choice = EntryDecision | Literal["always"]
BATCH = timedelta(hours=1)
"""How long a first entry waits for others before the owner is notified."""
EVERY = timedelta(days=1)
"""The least time between two notifications about the digest of a team."""
USES_FOR = timedelta(days=7)
"""How long the digest shows that a grant was used."""
MOST_IDS = 1000
_ENDED: tuple[TeamStatus, ...] = ("completed", "stopped")
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
_WORDS: dict[EntryKind, tuple[str, str]] = {
    "ask": ("request", "requests"),
    "pending": ("pending note", "pending notes"),
    "unverified": ("unverified fact or note", "unverified facts and notes"),
    "file": ("file with untrusted text", "files with untrusted text"),
    "trigger": ("trigger with untrusted text", "triggers with untrusted text"),
    "use": ("grant in use", "grants in use"),
}


def of_team(tx: Tx, team_id: TeamId, *, person_id: PersonId) -> Digest:
    """Return the digest of a team: requests first, then entries of features, triggers and
    uses of grants; and the end of its goal until the person has read of it."""
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
        *_uses(tx, team_id),
    ]
    ended = _ended(tx, team_id, person_id)
    return Digest(team_id=team_id, as_of=tx.now, entries=tuple(entries), ended=ended)


def _ended(tx: Tx, team_id: TeamId, person_id: PersonId) -> EndedGoal | None:
    """Return the end of a team's goal that this person has not read about; None while it works."""
    team = TEAMS.get(tx, team_id)
    goal = nodes.last_goal(tx, team_id) if team.status in _ENDED else None
    if goal is None or goal.ended_at is None:
        return None
    unread = messages.unread_endings(tx, person_id, goal.id)
    if not unread:
        return None
    return EndedGoal(
        message_id=unread[-1],
        node_id=goal.id,
        status=goal.status,
        goal=team.goal,
        ended_at=goal.ended_at,
    )


def _of_ask(tx: Tx, request: Message) -> Entry:
    assert request.call is not None
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
        always=requests.offer(request),
    )


def _uses(tx: Tx, team_id: TeamId) -> list[Entry]:
    """Return the entries of the grants that calls have used lately."""
    return [
        Entry(
            id=grant.id,
            kind="use",
            title=f"{grant.kind} used {times(grant.used)}, last {_moment(grant.used_at)}",
            text=grant.pattern,
            source="",
            created_at=grant.used_at,
        )
        for grant in grant_rows.listed(tx, team_id)
        if grant.used_at is not None and grant.used_at > tx.now - USES_FOR
        if grant.revoked_at is None and (grant.until is None or grant.until > tx.now)
    ]


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
    chosen: dict[Choice, Sequence[str]] = {
        "confirm": confirm,
        "reject": decisions.reject,
        "always": decisions.always,
        "stop": decisions.stop,
    }
    given = [identity for identities in chosen.values() for identity in identities]
    if len(given) > MOST_IDS and decisions.confirm != "all":
        raise Refused(f"Decide on at most {MOST_IDS:,} entries at once, not on {len(given):,}.")
    if len(set(given)) != len(given):
        raise Refused("An entry is named twice; decide once on each.")
    for choice, identities in chosen.items():
        for identity in identities:
            _decide(tx, identity, choice, person_id)
    return given


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


def _decide(tx: Tx, identity: str, choice: Choice, person_id: PersonId) -> None:
    """Apply a decision: on a request, on a trigger, or on what a feature has listed."""
    is_request = identity.startswith("msg_")
    if choice == "stop":
        definitions.cancel(tx, TriggerId(identity))
    elif choice == "always" or (is_request and choice == "reject"):
        asked = inbox.item(tx, person_id, MessageId(identity)).message
        is_always = choice == "always"
        # The grant for one request may have approved another of them.
        if is_always and asked.answered_at is not None:
            return
        decision = "approve" if is_always else "deny"
        answers.answer_question(
            tx, asked.id, "", person_id=person_id, decision=decision, always=is_always
        )
    elif is_request:
        raise Refused(A_WAY_OUT.format(id=identity))
    elif choice == "confirm" and TRIGGERS.find(tx, identity) is not None:
        definitions.confirm(tx, TriggerId(identity))
    else:
        confirms = choice == "confirm"
        of = find_verbs()
        if not any(v.decide(tx, identity, confirms=confirms, person_id=person_id) for v in of):
            raise NotFound("entry", identity)


def decide_one(tx: Tx, identity: str, decision: EntryDecision, *, person_id: PersonId) -> None:
    """Confirm, reject or stop one entry that was selected with others; never a request."""
    if identity.startswith("msg_"):
        raise Refused(A_WAY_OUT.format(id=identity))
    if identity.startswith(file_labels.PREFIX):
        raise Refused(ONE_FILE)
    _decide(tx, identity, decision, person_id)


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
        draft = Draft(team_id=team_id, sender=SYSTEM, recipient=team.owner_id, text=text)
        draft = replace(draft, kind="report", title="Digest", topic="digest", ref=team_id)
        bus.send(tx, draft, refusable=False)
        return
    seq = messages.next_seq(tx, team_id, team.owner_id)
    # Shown again as unread, because the person may have archived or snoozed the last notice.
    in_sight = {"seen_at": None, "archived_at": None, "snoozed_until": None}
    MESSAGES.update(tx, last.id, text=text, seq=seq, created_at=tx.now, **in_sight)
    deliveries.queue(tx, MESSAGES.get(tx, last.id))


def _counts(entries: Sequence[Entry]) -> str:
    found = Counter(entry.kind for entry in entries)
    return ", ".join(counted(found[kind], *_WORDS[kind]) for kind in _WORDS if found[kind])
