"""Inbox: what agents put before the person, and what the person says to it."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, model_validator

from agiraph.api.deps import Limit, Once, TheApi
from agiraph.api.presenters import item_view
from agiraph.api.problems import documented
from agiraph.api.views import InboxItem, InboxPage
from agiraph.domain.ids import MessageId
from agiraph.domain.messages import Decision
from agiraph.services.lifecycle import briefings, journal
from agiraph.services.mail import bus, inbox
from agiraph.store.tx import Tx

router = APIRouter(tags=["inbox"])


class TheAnswer(BaseModel):
    """Words for a question; a decision, with a note if you like, for an approval."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"text": "Data centre only."}}
    )

    text: str = Field(default="", max_length=bus.TEXT_LIMIT)
    decision: Decision | None = None
    note: str = Field(default="", max_length=bus.TEXT_LIMIT)

    @model_validator(mode="after")
    def _says_something(self) -> "TheAnswer":
        if not self.text.strip() and self.decision is None:
            raise ValueError("say something in `text`, or `approve` or `deny` in `decision`")
        return self


class Thumb(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"thumb": "up"}}
    )

    thumb: Literal["up", "down"]


@router.get("/inbox", responses=documented())
async def list_inbox(
    api: TheApi,
    after: Annotated[str, Query(max_length=200, description="The cursor of the page before.")] = "",
    limit: Limit = 100,
) -> InboxPage:
    """What needs an answer first, then the newest. Reading takes nothing away."""

    def look(tx: Tx) -> InboxPage:
        page = inbox.page(tx, after=after, limit=limit)
        shown = [item_view(tx, item) for item in page.items]
        return InboxPage(items=shown, cursor=page.cursor, unread=inbox.count_unread(tx))

    return await api.store.read(look)


@router.get("/inbox/{item}", responses=documented(404))
async def get_item(item: str, api: TheApi) -> InboxItem:
    """One item."""
    return await api.store.read(lambda tx: item_view(tx, inbox.item(tx, MessageId(item))))


@router.post("/inbox/{item}/read", responses=documented(404))
async def mark_read(item: str, api: TheApi) -> InboxItem:
    """The person has seen this."""
    return await api.store.write(lambda tx: item_view(tx, inbox.mark_read(tx, MessageId(item))))


@router.post("/inbox/{item}/answer", responses=documented(404, 409))
async def answer_item(item: str, body: TheAnswer, api: TheApi, once: Once) -> InboxItem:
    """Answer a question or decide on an approval. The first answer stands: a second gets 409."""

    def answer(tx: Tx) -> InboxItem:
        inbox.item(tx, MessageId(item))
        words = body.text or body.note
        journal.answer_question(tx, MessageId(item), words, decision=body.decision)
        return item_view(tx, inbox.item(tx, MessageId(item)))

    return await once(answer, status=200)  # pyright: ignore[reportReturnType]


@router.post("/inbox/{item}/rate", responses=documented(404))
async def rate_briefing(item: str, body: Thumb, api: TheApi) -> InboxItem:
    """A thumb on a briefing: up lets more of its kind through, down fewer."""

    def rate(tx: Tx) -> InboxItem:
        inbox.item(tx, MessageId(item))
        briefings.rate(tx, MessageId(item), up=body.thumb == "up")
        return item_view(tx, inbox.item(tx, MessageId(item)))

    return await api.store.write(rate)
