"""Inbox routes: questions, approvals and reports for the person, and the person's answers."""

from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from agiraph.api.decision_views import BulkOutcome, BulkView
from agiraph.api.deps import (
    Api,
    ApiDep,
    CallerDep,
    Idempotent,
    Limit,
    PersonDep,
    SaidByDep,
    check_owner,
)
from agiraph.api.presenters import inbox_item_view, message_view
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.api.views import InboxItem, InboxPage, MessageView
from agiraph.domain.access import covers
from agiraph.domain.digest import EntryDecision
from agiraph.domain.errors import NotFound, OutOfScope, Refused
from agiraph.domain.ids import MessageId, PersonId
from agiraph.domain.messages import Box, Decision, Filing
from agiraph.services.lifecycle import answers, briefings, digest, routing
from agiraph.services.mail import bus, filing, inbox
from agiraph.store import teams
from agiraph.store.messages import MESSAGES
from agiraph.store.tx import Tx

router: APIRouter = api_router("inbox")
NOT_TO_DECIDE = (
    "To decide on an approval needs the scope 'operate'; the token has {scope!r}, with which its "
    "bearer can answer questions and talk."
)


class AnswerRequest(BaseModel):
    """Text for a question; for an approval a decision, with an optional note."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"text": "Data centre only."}}
    )

    text: str = Field(default="", max_length=bus.TEXT_LIMIT)
    decision: Decision | None = None
    note: str = Field(default="", max_length=bus.TEXT_LIMIT)
    always: bool = Field(
        default=False,
        description="With `approve`: allow all such calls of the team from now on, by a grant. "
        "Needs the scope `admin`.",
    )

    @model_validator(mode="after")
    def _has_content(self) -> "AnswerRequest":
        if not self.text.strip() and self.decision is None:
            raise ValueError("write `text`, or set `decision` to `approve` or `deny`")
        return self


InboxKind = Literal["question", "approval", "briefing", "report", "failure", "result"]
BulkAction = Filing | EntryDecision


class BulkRequest(BaseModel):
    """One action on many items. Each item has its own outcome: one that fails stops no other."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"action": "archive", "ids": ["msg_1"]}}
    )

    action: BulkAction = Field(
        description="`read`, `unread`, `archive`, `restore` and `snooze` are for items of the "
        "inbox; `confirm`, `reject` and `stop` for entries of the digest. Requests for approval "
        "are never decided in bulk."
    )
    ids: list[Annotated[str, Field(max_length=200)]] = Field(
        min_length=1, max_length=filing.MOST_ITEMS
    )
    until: AwareDatetime | None = Field(default=None, description="When a snoozed item returns.")


class RatingRequest(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"thumb": "up"}}
    )

    thumb: Literal["up", "down"]


@router.get("/inbox", responses=documented(404))
async def list_inbox(
    api: ApiDep,
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

    def look(tx: Tx) -> InboxPage:
        team_id = teams.find(tx, team).id if team else None
        page = inbox.page(tx, person, box=box, team_id=team_id, kind=kind, after=after, limit=limit)
        shown = [inbox_item_view(tx, item) for item in page.items]
        return InboxPage(items=shown, cursor=page.cursor, unread=inbox.count_unread(tx, person))

    return await api.store.read(look)


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
        outcomes = await api.store.write(filing.file, person, body.ids, action, until=body.until)
    return BulkView(
        outcomes=[BulkOutcome(id=o.id, is_done=not o.reason, reason=o.reason) for o in outcomes]
    )


async def _decide(
    api: Api, identity: str, decision: EntryDecision, person: PersonId
) -> filing.Outcome:
    try:
        await api.store.write(digest.decide_one, identity, decision, person_id=person)
    except Refused as error:
        return filing.Outcome(id=identity, reason=str(error))
    return filing.Outcome(id=identity)


@router.get("/inbox/{item}", responses=documented(404))
async def get_item(item: str, api: ApiDep, person: PersonDep) -> InboxItem:
    """Return one item."""
    return await api.store.read(
        lambda tx: inbox_item_view(tx, inbox.item(tx, person, MessageId(item)))
    )


@router.post("/inbox/{item}/read", responses=documented(404))
async def mark_read(item: str, api: ApiDep, person: PersonDep) -> InboxItem:
    """Mark an item as read."""
    return await api.store.write(
        lambda tx: inbox_item_view(tx, inbox.mark_read(tx, person, MessageId(item)))
    )


@router.post("/inbox/{item}/answer", responses=documented(404, 409))
async def answer_item(
    item: str,
    body: AnswerRequest,
    caller: CallerDep,
    person: PersonDep,
    said_by: SaidByDep,
    idempotently: Idempotent,
) -> InboxItem:
    """Answer a question or decide on an approval. The first answer counts: a second gets 409."""
    if body.always:
        check_owner(caller)

    def answer(tx: Tx) -> InboxItem:
        # Raises NotFound for a message to somebody else: nobody answers in another person's name.
        asked = inbox.item(tx, person, MessageId(item))
        if asked.message.kind == "approval" and not covers(caller.scope, "operate"):
            raise OutOfScope(NOT_TO_DECIDE.format(scope=caller.scope))
        words = body.text or body.note
        answers.answer_question(
            tx,
            MessageId(item),
            words,
            person_id=person,
            decision=body.decision,
            always=body.always,
            label=said_by,
        )
        return inbox_item_view(tx, inbox.item(tx, person, MessageId(item)))

    return await idempotently(answer, status=200)  # pyright: ignore[reportReturnType]


@router.post("/inbox/{item}/rate", responses=documented(404))
async def rate_briefing(
    item: str, body: RatingRequest, api: ApiDep, person: PersonDep
) -> InboxItem:
    """Rate a briefing. `up` lowers the threshold for the next briefings, `down` raises it."""

    def rate(tx: Tx) -> InboxItem:
        inbox.item(tx, person, MessageId(item))
        briefings.rate(tx, MessageId(item), up=body.thumb == "up")
        return inbox_item_view(tx, inbox.item(tx, person, MessageId(item)))

    return await api.store.write(rate)


@router.post("/messages/{message}/acts/{place}/undo", responses=documented(404, 409))
async def undo_act(message: str, place: int, api: ApiDep, person: PersonDep) -> MessageView:
    """Undo one thing that a reply did: what was started is cancelled, what was stopped goes on, an
    answered question is open again, a reminder is removed, what was remembered is forgotten."""

    def undo(tx: Tx) -> MessageView:
        found = MESSAGES.get(tx, message)
        if found.recipient != person:
            raise NotFound("message", message)
        return message_view(tx, routing.undo(tx, found.id, place))

    return await api.store.write(undo)
