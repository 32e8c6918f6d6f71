"""Inbox routes: questions, approvals and reports for the person, the person's decisions on one or
many of them, and what they have allowed for longer than one call."""

from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from agiraph.api.decision_views import (
    BulkOutcome,
    BulkView,
    DecidedView,
    DigestView,
    GrantView,
    InboxCounts,
    InboxRows,
)
from agiraph.api.deps import (
    Api,
    ApiDep,
    CallerDep,
    Depends,
    Limit,
    PersonDep,
    Query,
    SaidByDep,
    check_owner,
)
from agiraph.api.presenters import (
    digest_view,
    grant_view,
    inbox_item_view,
    inbox_row_view,
    message_view,
)
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.api.views import InboxItem, InboxPage, MessageView
from agiraph.core.domain.errors import NotFound, OutOfScope, Refused
from agiraph.core.domain.ids import MessageId, PersonId, TeamId
from agiraph.core.domain.messages import Box, Decision, Filing, MessageKind
from agiraph.core.domain.provenance.access import covers
from agiraph.core.domain.records.digest import EntryDecision
from agiraph.core.domain.value import dataclass
from agiraph.core.services.lifecycle import answers, digest, routing
from agiraph.core.services.mail import bus, filing, inbox
from agiraph.core.store import grants as grant_rows
from agiraph.core.store import teams
from agiraph.core.store.lists.inbox_items import InboxFilter
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.tx import Tx

router: Router = Router("inbox")
grant_router: Router = Router("grants")
MOST_TEAMS = 1000
NOT_TO_DECIDE = (
    "To decide on an approval needs the scope 'operate'; the token has {scope!r}, with which its "
    "bearer can answer questions and talk."
)
InboxKind = Literal["question", "approval", "briefing", "report", "failure", "result"]
BulkAction = Filing | EntryDecision
Ids = Annotated[list[str], Field(max_length=digest.MOST_IDS)]


class AnswerRequest(Body, example={"text": "Data centre only."}):
    """Text for a question; for an approval a decision, with an optional note."""

    text: str = Field(default="", max_length=bus.TEXT_LIMIT)
    decision: Decision | None = None
    note: str = Field(default="", max_length=bus.TEXT_LIMIT)
    always: bool = Field(
        default=False,
        description="With `approve`: allow all such calls of the team from now on, by a grant. "
        "Needs the scope `admin`.",
    )

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if not self.text.strip() and self.decision is None:
            raise ValueError("write `text`, or set `decision` to `approve` or `deny`")
        return self


class BulkRequest(Body, strict=False, example={"action": "archive", "ids": ["msg_1"]}):
    """One action on many items. Each item has its own outcome: one that fails stops no other."""

    action: BulkAction = Field(
        description="`read`, `unread`, `archive`, `restore` and `snooze` are for items of the "
        "inbox; `confirm`, `reject` and `stop` for entries of the digest. Requests for approval "
        "are never decided in bulk."
    )
    ids: list[Annotated[str, Field(max_length=200)]] = Field(
        min_length=1, max_length=filing.MOST_ITEMS
    )
    until: AwareDatetime | None = Field(default=None, description="When a snoozed item returns.")


class RatingRequest(Body, example={"thumb": "up"}):
    thumb: Literal["up", "down"]


class DigestDecisions(Body, strict=False, example={"team": "beans", "confirm": "all"}):
    """Decisions on entries of the digest; all of them are made, or none."""

    team: str | None = Field(
        default=None, max_length=200, description="What `all` means; null: all teams."
    )
    confirm: Literal["all"] | Ids = Field(
        default_factory=list[str],
        description="Knowledge, notes and triggers. `all` never confirms a request: a way out is "
        "answered by itself.",
    )
    reject: Ids = Field(
        default_factory=list[str], description="Knowledge to remove, requests to deny."
    )
    always: Ids = Field(
        default_factory=list[str],
        description="Requests to approve, with all later calls of their kind. Needs the scope "
        "`admin`.",
    )
    stop: Ids = Field(default_factory=list[str], description="Triggers to cancel.")
    as_of: datetime | None = Field(
        default=None, description="Of the digest that was shown: `all` confirms nothing newer."
    )


class NewGrant(Body, strict=False, example={"kind": "read", "pattern": "docs.python.org"}):
    kind: Literal["read", "reach", "packages", "tool", "command", "trust"] = Field(
        description="read: open any address of a host. reach: commands may talk to a host, for 30 "
        "days unless `until` says otherwise. packages: install a package. tool: call a tool. "
        "command: run these exact words. trust: what a program or a host says, or what lies in a "
        "given folder, counts as the team's."
    )
    pattern: str = Field(
        min_length=1,
        max_length=answers.MAX_PATTERN,
        description="The host (`*.` before it includes its subdomains), the exact command, the "
        "name of the tool, package or program, or `folder:NAME` for a folder of the team.",
    )
    until: datetime | None = Field(default=None, description="When it ends; null: never.")
    home: bool = Field(default=False, description="Whether it holds for all teams of this home.")


# The digest comes before the inbox, whose items have any id.
@router.read("/inbox/digest", 404)
def get_digest(
    tx: Tx,
    person: PersonDep,
    team: Annotated[str, Query(max_length=200, description="Only this team.")] = "",
    words: Annotated[bool, Query(description="Return the exact words of every entry.")] = False,
) -> list[DigestView]:
    """List what the person may decide on, and which teams have ended meanwhile: each team that has
    something."""
    found = [digest.of_team(tx, t, person_id=person) for t in _teams(tx, team, person)]
    return [digest_view(tx, one, words=words) for one in found if one.entries or one.ended]


@router.write_once("/inbox/digest", 404, 409)
def decide_digest(
    tx: Tx, body: DigestDecisions, caller: CallerDep, person: PersonDep
) -> DecidedView:
    """Decide on many entries at once: confirm, reject, allow for good, stop."""
    if body.always:
        check_owner(caller)
    decisions = digest.Decisions(
        confirm="all" if body.confirm == "all" else tuple(body.confirm),
        reject=tuple(body.reject),
        always=tuple(body.always),
        stop=tuple(body.stop),
    )
    team_ids = _teams(tx, body.team or "", person)
    ids = digest.decide(tx, decisions, person_id=person, team_ids=team_ids, as_of=body.as_of)
    return DecidedView(ids=ids)


def _teams(tx: Tx, name: str, person: PersonId) -> list[TeamId]:
    """Return the team of this name, or all teams that the person owns."""
    if name:
        return [teams.find(tx, name).id]
    return [t.id for t in teams.page(tx, limit=MOST_TEAMS) if t.owner_id == person]


@router.read("/inbox", 404)
def list_inbox(
    tx: Tx,
    person: PersonDep,
    after: Annotated[
        str, Query(max_length=200, description="The cursor of the previous page.")
    ] = "",
    limit: Limit = 100,
    box: Annotated[Box, Query(description="What is in sight, snoozed or archived.")] = "inbox",
    team: Annotated[str, Query(max_length=200, description="Only items of this team.")] = "",
    kind: Annotated[
        InboxKind | None, Query(description="Only items of this kind; else of all.")
    ] = None,
) -> InboxPage:
    """List the inbox: items that need an answer first, then the newest. Changes nothing."""
    team_id = teams.find(tx, team).id if team else None
    page = inbox.page(tx, person, box=box, team_id=team_id, kind=kind, after=after, limit=limit)
    shown = [inbox_item_view(tx, item) for item in page.items]
    return InboxPage(items=shown, cursor=page.cursor, unread=inbox.count_unread(tx, person))


@dataclass(frozen=True, slots=True)
class Place:
    """A part of the inbox: a box, and there the items of one team or of one kind."""

    box: Box
    team: str
    kind: MessageKind | None


def _place(
    box: Annotated[Box, Query(description="What is in sight, snoozed or archived.")] = "inbox",
    team: Annotated[str, Query(max_length=200, description="Only items of this team.")] = "",
    kind: Annotated[
        InboxKind | None, Query(description="Only items of this kind; else of all.")
    ] = None,
) -> Place:
    return Place(box, team, kind)


@router.read("/inbox/rows", 404)
def list_rows(
    tx: Tx,
    person: PersonDep,
    place: Annotated[Place, Depends(_place)],
    after: Annotated[
        str, Query(max_length=200, description="The cursor of the previous page.")
    ] = "",
    limit: Limit = 50,
    open: Annotated[bool, Query(description="Only items that wait for an answer.")] = False,
    newer_than: Annotated[
        str, Query(max_length=200, description="Only items that came after the one with this id.")
    ] = "",
    item: Annotated[
        list[str] | None,
        Query(
            max_length=filing.MOST_ITEMS,
            description="Only these items, in any box; then nothing else counts.",
        ),
    ] = None,
) -> InboxRows:
    """List the inbox in short rows, in the order of `GET /inbox`, with the counts of all of it.

    `GET /inbox/{item}` returns an item with all its words.
    """
    if item:
        found = inbox.rows_of(tx, person, item)
    else:
        of = InboxFilter(
            person_id=person,
            box=place.box,
            team_id=teams.find(tx, place.team).id if place.team else None,
            kind=place.kind,
            newer_than=newer_than,
        )
        found = inbox.rows(tx, of, only_open=open, after=after, limit=limit)
    shown = [inbox_row_view(row) for row in found.items]
    return InboxRows.of(inbox.counts(tx, person), items=shown, cursor=found.cursor)


@router.read("/inbox/counts")
def count_inbox(tx: Tx, person: PersonDep) -> InboxCounts:
    """Return what badges say of the inbox."""
    return InboxCounts.of(inbox.counts(tx, person))


@router.post("/inbox/bulk", responses=documented(422))
async def act_in_bulk(body: BulkRequest, api: ApiDep, person: PersonDep) -> BulkView:
    """Read, archive, snooze or decide several items with one request.

    The answer names for each item whether it was done, and if not, why. An item that fails changes
    nothing for the others.
    """
    action = body.action
    if action == "confirm" or action == "reject" or action == "stop":
        # Each in its own transaction: what a refused entry has written is taken back with it.
        filing.check(body.ids, "read", until=body.until, now=api.clock.now())
        outcomes = [await _decide(api, one, action, person) for one in body.ids]
    else:
        outcomes = await api.store.write_first(
            filing.file, person, body.ids, action, until=body.until
        )
    return BulkView(outcomes=[BulkOutcome.of(o, is_done=not o.reason) for o in outcomes])


async def _decide(
    api: Api, identity: str, decision: EntryDecision, person: PersonId
) -> filing.Outcome:
    try:
        await api.store.write_first(digest.decide_one, identity, decision, person_id=person)
    except Refused as error:
        return filing.Outcome(id=identity, reason=str(error))
    return filing.Outcome(id=identity)


@router.read("/inbox/{item}", 404)
def get_item(tx: Tx, item: str, person: PersonDep) -> InboxItem:
    """Return one item."""
    return inbox_item_view(tx, inbox.item(tx, person, MessageId(item)))


@router.write("POST", "/inbox/{item}/read", 404)
def mark_read(tx: Tx, item: str, person: PersonDep) -> InboxItem:
    """Mark an item as read."""
    return inbox_item_view(tx, inbox.mark_read(tx, person, MessageId(item)))


@router.write_once("/inbox/{item}/answer", 404, 409)
def answer_item(
    tx: Tx,
    item: str,
    body: AnswerRequest,
    caller: CallerDep,
    person: PersonDep,
    said_by: SaidByDep,
) -> InboxItem:
    """Answer a question or decide on an approval. The first answer counts: a second gets 409."""
    if body.always:
        check_owner(caller)
    # Raises NotFound for a message to somebody else: nobody answers in another person's name.
    asked = inbox.item(tx, person, MessageId(item))
    if asked.message.kind == "approval" and not covers(caller.scope, "operate"):
        raise OutOfScope(NOT_TO_DECIDE.format(scope=caller.scope))
    answers.answer_question(
        tx,
        MessageId(item),
        body.text or body.note,
        person_id=person,
        decision=body.decision,
        always=body.always,
        label=said_by,
    )
    return get_item(tx, item, person)


@router.write("POST", "/inbox/{item}/rate", 404)
def rate_briefing(tx: Tx, item: str, body: RatingRequest, person: PersonDep) -> InboxItem:
    """Rate a briefing. `up` lowers the threshold for the next briefings, `down` raises it."""
    inbox.item(tx, person, MessageId(item))
    inbox.rate(tx, MessageId(item), up=body.thumb == "up")
    return get_item(tx, item, person)


@router.write("POST", "/messages/{message}/acts/{place}/undo", 404, 409)
def undo_act(tx: Tx, message: str, place: int, person: PersonDep) -> MessageView:
    """Undo one thing that a reply did: what was started is cancelled, what was stopped goes on, an
    answered question is open again, a reminder is removed, what was remembered is forgotten."""
    found = MESSAGES.get(tx, message)
    if found.recipient != person:
        raise NotFound("message", message)
    return message_view(tx, routing.undo(tx, found.id, place))


@grant_router.read("/teams/{team}/grants", 404)
def list_grants(tx: Tx, team: str) -> list[GrantView]:
    """List the grants of a team and of the whole home, newest first, revoked ones too."""
    found = grant_rows.listed(tx, teams.find(tx, team).id)
    return [grant_view(grant, tx.now) for grant in found]


@grant_router.write_once("/teams/{team}/grants", 404, 409, status=201)
def create_grant(tx: Tx, team: str, body: NewGrant, person: PersonDep) -> GrantView:
    """Allow something from now on. Open requests that it covers are approved."""
    found, until = teams.find(tx, team), body.until
    if until is not None and until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    made = answers.allow(
        tx,
        kind=body.kind,
        pattern=body.pattern,
        person_id=person,
        team_id=None if body.home else found.id,
        until=until,
    )
    return grant_view(made, tx.now)


@grant_router.write("DELETE", "/teams/{team}/grants/{grant}", 404, 409)
def revoke_grant(tx: Tx, team: str, grant: str) -> GrantView:
    """Revoke a grant: the next such call asks again. The grant stays in the list."""
    return grant_view(answers.revoke_grant(tx, grant, team_id=teams.find(tx, team).id), tx.now)
