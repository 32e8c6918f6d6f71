"""Answers: a person answers a question, decides on a request for approval, or allows such calls for
longer than one time.

An answer that comes after the end of the work that asked starts nothing: the person is asked what
to do with it. Only routes and commands of persons make and revoke grants; `requests.use_grant` is
what a call may do with one.
"""

from datetime import datetime, timedelta

from agiraph.core.domain.chat import IN_WORDS
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.events.team import GrantRevoked
from agiraph.core.domain.ids import SYSTEM, AgentId, MessageId, PersonId, TeamId, new_id
from agiraph.core.domain.messages import NEEDS_ANSWER, Decision, Draft, Message
from agiraph.core.domain.provenance.grants import REACH_LASTS, Grant, GrantKind
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text import fence, quotations
from agiraph.core.domain.work import WaitingOn
from agiraph.core.services.board import labels, requests, waiting
from agiraph.core.services.board.feature_verbs import verbs_of
from agiraph.core.services.lifecycle import overspending
from agiraph.core.services.lifecycle.teams import reactivate
from agiraph.core.services.mail import bus
from agiraph.core.store import grants, messages, spend, teams, waits
from agiraph.core.store.grants import GRANTS
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS, TEAMS, coordinator
from agiraph.core.store.tx import Tx
from agiraph.late_patterns import late
from agiraph.redaction import redact

REFUSED = "The human refused this call."
AGAIN = "Make the same call again if you still want it: it is allowed now."
GIVE, LEAVE = "Give it to {name} as new work", "Do nothing"
"""What a person may choose for a late answer."""
WHAT_NOW = (
    "The work that asked \u201c{question}\u201d has ended, so nothing was started with your answer "
    "\u201c{words}\u201d. What shall be done with it?"
)
NOTHING_WAITS = "The work that asked has ended, so this request was closed; nothing was done."
NEW_KEY = "A new key was entered, so the work goes on."
CHOOSE = "Choose {options}. To say anything else, write to {name}."
MAX_PATTERN = 10_000
"""Characters of a pattern; a command may be long."""
LONGEST_GRANT = timedelta(days=3650)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = late(rf"(?:{_LABEL}\.)*{_LABEL}|\[?[0-9a-f:]+\]?")
_WITH_SUBDOMAINS = late(rf"\*\.(?:{_LABEL}\.)+{_LABEL}")
_NAME = late(r"[\w@][\w@.:/+-]{0,199}")
NOT_A_HOST = (
    "{pattern!r} is not a host: write it alone, such as docs.python.org, or *.python.org to "
    "include its subdomains."
)
NO_ALWAYS = (
    "This way out is decided call by call: approve this one alone. A rule of the team can allow "
    "such calls (PATCH /teams/{team} with `permissions`)."
)
FOLDER = "folder:"
"""Before the name or path of a given folder that a `trust` grant names."""
ONE_RUN = "Whether a program runs again is decided run by run: approve this one alone."


def answer_question(
    tx: Tx,
    question_id: MessageId,
    text: str,
    *,
    person_id: PersonId,
    decision: Decision | None = None,
    always: bool = False,
    label: Label = CLEAN,
) -> bool:
    """Close a question or a request with a person's answer, and give it to the call that waits.
    Return whether the work that asked has ended.

    The question is closed in the same transaction, so only the first answer counts. If no call
    waits any more, the answer goes to the agent as a message; if the work has ended, the person is
    asked what to do with it. `always` approves all later calls of the same kind as well, by a
    grant. The `label` is added to that of the person's words.
    """
    if (limited := spend.asked_by(tx, question_id)) is not None:
        overspending.decide_on_day(tx, limited.day, text, person_id=person_id, decision=decision)
        return False
    if always and decision != "approve":
        raise Refused("`always` belongs to an approval: set `decision` to `approve`.")
    asked = requests.lock(tx, question_id)
    if is_late(tx, asked):
        _ask_what_now(tx, asked, text, person_id=person_id, decision=decision, label=label)
        return True
    if asked.topic == "late_answer":
        _settle_late(tx, asked, text, person_id=person_id)
        return False
    question = bus.record_answer(
        tx, question_id, text, person_id=person_id, decision=decision, label=label
    )
    granted = _grant_always(tx, question, person_id=person_id) if always else None
    above = [] if question.node_id is None else [question.node_id]
    if question.kind == "question":
        if question.fault is not None:
            above = [wait.node_id for wait in waits.on(tx, WaitingOn("answer", question_id))]
        of_words = label | labels.of_person(tx, question.team_id, text)
        settled = waiting.settle(
            tx,
            WaitingOn("answer", question_id),
            lambda thread: quotations.enclose_quoted(text, thread=thread),
            label=of_words,
        )
        if not settled:
            _send_answer(tx, question, text, person_id, label)
    elif question.topic == "spending":
        overspending.decide_on_goal(tx, question, decision, person_id=person_id)
    else:
        _decide(tx, question, text, person_id=person_id, decision=decision)
    if granted is not None:
        _approve_covered(tx, granted, person_id=person_id)
    for node_id in above:
        waiting.pause_or_resume_above(tx, node_id)
    return False


def accept_key(tx: Tx, provider: str) -> None:
    """Let all work go on that waits because this provider refused its key: there is a new one."""
    for asked in messages.about(tx, "key", provider):
        if requests.end(tx, asked.id, NEW_KEY):
            waiting.resume(tx, WaitingOn("answer", asked.id))


def is_late(tx: Tx, question: Message) -> bool:
    """Whether an answer to a question comes after the end of the work that asked."""
    if question.closed_at is not None or question.answered_at is not None:
        return question.closed_at is not None
    # Work that ended in an earlier version left its questions open.
    node = None if question.node_id is None else NODES.get(tx, question.node_id)
    return question.kind in NEEDS_ANSWER and node is not None and node.status.is_final


def _ask_what_now(
    tx: Tx,
    question: Message,
    text: str,
    *,
    person_id: PersonId,
    decision: Decision | None,
    label: Label,
) -> None:
    """Keep a late answer, and ask the person what to do with it. Raise `Conflict` if they refuse a
    request without words: there is nothing to be done."""
    if question.answered_at is None:
        requests.close(tx, question, requests.CLOSED)
    text = text if text.strip() or decision != "approve" else "Approved."
    if not text.strip():
        raise Conflict(NOTHING_WAITS)
    said = bus.keep_answer(tx, question, text, person_id=person_id, label=label)
    agent = AGENTS.get(tx, _member_or_coordinator(tx, AgentId(question.sender)))
    bus.send(
        tx,
        Draft(
            team_id=question.team_id,
            sender=agent.id,
            recipient=person_id,
            kind="question",
            text=WHAT_NOW.format(question=fence.one_line(question.text), words=text),
            options=(GIVE.format(name=agent.name), LEAVE),
            topic="late_answer",
            ref=said.id,
            label=question.label | said.label,
        ),
        refusable=False,
    )


def _settle_late(tx: Tx, asked: Message, text: str, *, person_id: PersonId) -> None:
    """Do what a person has chosen for a late answer."""
    if text not in asked.options:
        options = " or ".join(f"\u201c{option}\u201d" for option in asked.options)
        raise Refused(CHOOSE.format(options=options, name=bus.name_of(tx, asked.sender)))
    bus.record_answer(tx, asked.id, text, person_id=person_id, decision=None)
    said = MESSAGES.get(tx, asked.ref or "")
    assert said.in_reply_to is not None
    question = MESSAGES.get(tx, said.in_reply_to)
    if text != asked.options[0]:
        return
    node = None if question.node_id is None else NODES.get(tx, question.node_id)
    # An ended research goes on with the answer, if the team has room for it.
    ended = None if node is None or not node.status.is_final else node
    if ended is not None and verbs_of(ended).goes_on_with(tx, ended, said, person_id):
        return
    reactivate(tx, question.team_id)
    _send_answer(tx, question, said.text, person_id, said.label)


def _send_answer(tx: Tx, question: Message, text: str, person_id: PersonId, label: Label) -> None:
    asked = fence.one_line(question.text)
    _tell(tx, question, f"(answering {asked!r}) {text}", person_id, label)


def _decide(
    tx: Tx, question: Message, text: str, *, person_id: PersonId, decision: Decision | None
) -> None:
    """Give the decision on a request for a call to its agent.

    A call that waits for it is made or refused. An agent that went on, or whose call was
    interrupted, is told.
    """
    note = f" They say: {text}" if text else ""
    is_approved, by_rule = decision == "approve", question.way_out is None
    end = "" if is_approved or by_rule else _end_of_asking(tx, question)
    # Without a text: the call is not answered but made, when the node runs again.
    refused = None if is_approved else f"{REFUSED}{note}{end}"
    on = WaitingOn("approval", question.id)
    if by_rule:
        if not waiting.settle(tx, on, refused, failed=not is_approved):
            told = f"(about {question.text!r}) {refused or f'Approved.{note} {AGAIN}'}"
            _tell(tx, question, told, person_id)
        return
    assert question.call is not None
    about = f"your request {question.id} to call {question.call.name}.{note}"
    told = f"The human refused {about}{end}"
    if is_approved:
        told = f"The human approved {about} {AGAIN}"
    # A model that replied in words has no call that could be made or answered.
    in_words = any(wait.call_id == IN_WORDS for wait in waits.on(tx, on))
    answer = f"[Runtime] {told}" if in_words else refused
    if not waiting.settle(tx, on, answer, failed=not is_approved):
        _tell(tx, question, told)
    elif is_approved and note and not in_words:
        # The call is made, and its answer has no place for the person's words.
        _tell(tx, question, f"The human approved {about}")


def _end_of_asking(tx: Tx, question: Message) -> str:
    """Return the sentence that forbids further requests, if too many were denied in a row."""
    if question.node_id is None:
        return ""
    sent = messages.asks_of_node(tx, question.node_id)
    return f" {requests.SUBMIT}" if requests.is_denied_often(sent) else ""


def allow(
    tx: Tx,
    *,
    kind: GrantKind,
    pattern: str,
    person_id: PersonId,
    team_id: TeamId | None,
    until: datetime | None = None,
) -> Grant:
    """Make a grant for a person, and approve the open requests that it covers."""
    made = make_grant(
        tx, kind=kind, pattern=pattern, person_id=person_id, team_id=team_id, until=until
    )
    _approve_covered(tx, made, person_id=person_id)
    return made


def _approve_covered(tx: Tx, grant: Grant, *, person_id: PersonId) -> None:
    """Approve the open requests that a new grant covers: their calls may wait for a decision."""
    for other in messages.open_asks(tx, grant.team_id):
        if requests.covers(grant, other, now=tx.now) and not is_late(tx, other):
            answer_question(tx, other.id, "", person_id=person_id, decision="approve")


def _tell(
    tx: Tx, question: Message, text: str, person_id: PersonId | None = None, label: Label = CLEAN
) -> None:
    """Tell the agent that asked, in the words of a person, or else by a notice: it starts no work
    and ends no wait for a person.

    The notice names the tool only: a page may have dictated the arguments.
    """
    draft = Draft(
        team_id=question.team_id,
        sender=person_id or SYSTEM,
        recipient=_member_or_coordinator(tx, AgentId(question.sender)),
        kind="notice" if person_id is None else "message",
        text=text,
        in_reply_to=question.id,
        label=label,
    )
    bus.send(tx, draft, refusable=person_id is not None)


def _member_or_coordinator(tx: Tx, agent_id: AgentId) -> AgentId:
    """Return this agent's id, or the coordinator's if the agent has left the team."""
    agent = AGENTS.get(tx, agent_id)
    return agent.id if agent.retired_at is None else coordinator(tx, agent.team_id).id


def make_grant(
    tx: Tx,
    *,
    kind: GrantKind,
    pattern: str,
    person_id: PersonId,
    team_id: TeamId | None,
    until: datetime | None = None,
    from_ask: MessageId | None = None,
) -> Grant:
    """Allow this from now on, in one team or (without a team) in the whole home.

    Return the grant that does so; that may be an older one that is in force. A `reach` ends after
    30 days unless the person names another end.
    """
    if kind == "call" and from_ask is None:
        raise Refused("A grant for one call comes from a request; approve the request instead.")
    pattern = pattern if kind == "call" else _checked_pattern(tx, team_id, kind, pattern)
    if until is not None and not tx.now < until <= tx.now + LONGEST_GRANT:
        raise Refused(f"A grant ends in the future, within ten years, not at {until.isoformat()}.")
    if until is None and kind == "reach":
        until = tx.now + REACH_LASTS
    if team_id is not None:
        TEAMS.get(tx, team_id, lock=True)  # two persons who allow the same make one grant
        for known in grants.in_force(tx, team_id):
            what = (known.kind, known.pattern, known.team_id, known.until, known.uses_left)
            if what == (kind, pattern, team_id, until, None):
                return known
    grant = Grant(
        id=new_id("grant"),
        kind=kind,
        pattern=pattern,
        person_id=person_id,
        created_at=tx.now,
        team_id=team_id,
        until=until,
        from_ask=from_ask,
    )
    return requests.record_grant(tx, grant)


def _trusted_folder(tx: Tx, team_id: TeamId | None, named: str) -> str:
    """Return what a grant names that trusts a given folder: its real path, so that another folder
    which gets the same name later is not trusted."""
    among = teams.every(tx, limit=10_000) if team_id is None else [TEAMS.get(tx, team_id)]
    for folder in (one for team in among for one in team.folders):
        # Names of folders belong to a team; without a team only a path says which one is meant.
        if folder.path == named or (folder.name == named and team_id is not None):
            return folder.source
    given = [one for team in among for one in team.folders]
    known = ", ".join(one.source if team_id is None else FOLDER + one.name for one in given)
    raise Refused(f"{FOLDER}{named} is no folder that was given. There are: {known or 'none'}.")


def _grant_always(tx: Tx, request: Message, *, person_id: PersonId) -> Grant:
    """Make the grant that allows what a request asks for, in its team, from now on (`offer`)."""
    if request.call is None:
        raise Refused(f"{request.id} asks for no call, so nothing can be allowed for good.")
    if request.topic == "rerun":
        raise Refused(ONE_RUN)
    if (offered := requests.offer(request)) is None:
        raise Refused(NO_ALWAYS.format(team=request.team_id))
    return make_grant(
        tx,
        kind=offered.kind,
        pattern=offered.pattern,
        person_id=person_id,
        team_id=request.team_id,
        from_ask=request.id,
    )


def revoke_grant(tx: Tx, grant_id: str, *, team_id: TeamId | None = None) -> Grant:
    """End a grant. With `team_id` only one of that team, or of the whole home."""
    grant = GRANTS.find(tx, grant_id, lock=True)
    if grant is None or (team_id is not None and grant.team_id not in (None, team_id)):
        raise NotFound("grant", grant_id, known="`agiraph grants TEAM` lists them.")
    if not grants.revoke(tx, grant_id):
        raise Conflict(f"{grant_id} was revoked at {grant.revoked_at:%Y-%m-%d %H:%M} UTC.")
    if grant.team_id is not None:
        tx.emit(grant.team_id, GrantRevoked(grant_id=grant_id))
    return GRANTS.get(tx, grant_id)


def _checked_pattern(tx: Tx, team_id: TeamId | None, kind: GrantKind, pattern: str) -> str:
    """Return the pattern as it is compared; raise `Refused` if it names nothing exact."""
    if kind != "command":
        pattern = pattern.strip()
    if not pattern.strip() or len(pattern) > MAX_PATTERN:
        raise Refused(f"A grant names what it allows, in 1 to {MAX_PATTERN:,} characters.")
    if redact(pattern) != pattern:
        raise Refused("That holds a secret, which no grant keeps. Allow the call itself instead.")
    if kind == "trust" and pattern.startswith(FOLDER):
        return _trusted_folder(tx, team_id, pattern.removeprefix(FOLDER).strip())
    if kind in ("command", "trust"):  # what a program says is trusted by the words that run it
        return pattern
    if kind in ("read", "reach"):
        pattern = pattern.lower().removesuffix(".")
        if not _HOST.fullmatch(pattern) and not _WITH_SUBDOMAINS.fullmatch(pattern):
            raise Refused(NOT_A_HOST.format(pattern=pattern[:200]))
        return pattern
    if not _NAME.fullmatch(pattern):
        raise Refused(f"{pattern[:200]!r} is not a name: write the exact name, without wildcards.")
    return pattern
