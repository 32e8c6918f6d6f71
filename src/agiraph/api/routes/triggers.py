"""Trigger routes: triggers that wake a team's agents, their firings, and webhooks."""

import asyncio
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from starlette.requests import Request

from agiraph.api.deps import ApiDep, Header, Idempotent, Limit, PersonDep
from agiraph.api.presenters import trigger_view
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.api.views import CreatedTriggerView, TriggerView
from agiraph.core.domain.ids import AgentId, TriggerId
from agiraph.core.domain.triggers import ActionType, Firing, TriggerType
from agiraph.core.home.specialists import specialists
from agiraph.core.services.triggers import actions, due
from agiraph.core.services.triggers import definitions as verbs
from agiraph.core.store import teams, triggers
from agiraph.core.store.tx import Tx

router: Router = Router("triggers")
MOST_HOOK_BYTES = 128 * 1024
"""The most that is read of a webhook's request; the rest is ignored."""


class NewTrigger(
    Body,
    example={
        "type": "scheduled",
        "config": {"cron": "0 9 * * MON", "zone": "Europe/Berlin"},
        "payload": {"task": "Write the weekly summary"},
    },
):
    type: TriggerType
    agent: str | None = Field(
        default=None, max_length=200, description="The agent to wake; by default the coordinator."
    )
    config: dict[str, Any] = Field(default_factory=dict[str, Any])
    action: ActionType = "wake_agent"
    payload: dict[str, Any] = Field(default_factory=dict[str, Any])


class TriggerChangeRequest(
    Body, example={"config": {"cron": "0 8 * * MON", "zone": "Europe/Berlin"}}
):
    """Each given field is replaced as a whole; the others stay. The type cannot be changed."""

    status: Literal["active", "paused"] | None = None
    config: dict[str, Any] | None = Field(default=None, description="When it fires, from now on.")
    action: ActionType | None = None
    payload: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if all(part is None for part in (self.status, self.config, self.action, self.payload)):
            raise ValueError("set at least one of `status`, `config`, `action` and `payload`")
        return self


@router.read("/teams/{team}/triggers", 404)
def list_triggers(tx: Tx, team: str) -> list[TriggerView]:
    """List a team's triggers with their next due time and cost."""
    found = triggers.of_team(tx, teams.find(tx, team).id)
    return [trigger_view(tx, trigger) for trigger in found]


@router.post("/teams/{team}/triggers", status_code=201, responses=documented(404, 409))
async def create_trigger(
    team: str, body: NewTrigger, api: ApiDep, person: PersonDep, idempotently: Idempotent
) -> CreatedTriggerView:
    """Create a trigger by schedule, event, idleness or webhook, that wakes an agent or asks a
    research question again."""
    payload = body.payload
    if (action := actions.brought().get(body.action)) is not None:
        payload = action.complete(payload, await asyncio.to_thread(specialists, api.home))

    def create(tx: Tx) -> CreatedTriggerView:
        found = teams.find(tx, team)
        agent = teams.by_name(tx, found.id, body.agent or "coordinator")
        made = verbs.create(
            tx,
            agent_id=AgentId(agent.id),
            type=body.type,
            config=body.config,
            action=body.action,
            payload=payload,
            made_by=person,
        )
        return CreatedTriggerView.of(trigger_view(tx, made.trigger), secret=made.secret)

    return await idempotently(create, status=201)  # pyright: ignore[reportReturnType]


@router.write("PATCH", "/teams/{team}/triggers/{trigger}", 404, 409)
def change_trigger(tx: Tx, team: str, trigger: str, body: TriggerChangeRequest) -> TriggerView:
    """Change when a trigger fires or what it does; pause or resume it."""
    found = verbs.find(tx, teams.find(tx, team).id, trigger)
    parts = body.model_dump(include={"config", "action", "payload"}, exclude_none=True)
    if parts:
        found = verbs.change(tx, found.id, **parts)
    if body.status is not None:
        switch = verbs.pause if body.status == "paused" else verbs.resume
        found = switch(tx, found.id)
    return trigger_view(tx, found)


@router.write("DELETE", "/teams/{team}/triggers/{trigger}", 404, status=204)
def cancel_trigger(tx: Tx, team: str, trigger: str) -> None:
    """Cancel a trigger."""
    verbs.cancel(tx, verbs.find(tx, teams.find(tx, team).id, trigger).id)


@router.write_once("/teams/{team}/triggers/{trigger}/run", 404, 409)
def run_trigger(tx: Tx, team: str, trigger: str) -> Firing:
    """Fire a trigger once, now. Its schedule stays as it is; an outcome of `skipped` has the reason
    why it did not run."""
    return due.run_now(tx, verbs.find(tx, teams.find(tx, team).id, trigger).id)


@router.read("/teams/{team}/triggers/{trigger}/firings", 404)
def list_firings(tx: Tx, team: str, trigger: str, limit: Limit = 100) -> list[Firing]:
    """List a trigger's firings and the times or events that it skipped, newest first."""
    found = verbs.find(tx, teams.find(tx, team).id, trigger)
    return triggers.firings(tx, found.id, limit=limit)


@router.post("/hooks/{trigger}", status_code=202, responses=documented(404, 409))
async def hit_webhook(
    trigger: str,
    request: Request,
    api: ApiDep,
    secret: Annotated[str, Header(alias="X-Agiraph-Secret", max_length=200)],
    delivery: Annotated[
        str | None,
        Header(alias="X-Delivery-Id", max_length=200, description="A repeated id fires only once."),
    ] = None,
) -> Firing:
    """Fire a webhook trigger. The request carries the trigger's own secret instead of a token."""
    # Before anything of the body is read: who has no secret must not fill the memory.
    await api.store.read(due.check_secret, TriggerId(trigger), secret)
    body = bytearray()
    async for piece in request.stream():
        body += piece[: MOST_HOOK_BYTES - len(body)]
        if len(body) == MOST_HOOK_BYTES:
            break
    # More than the trigger ever shows to a model (`EXCERPT_CHARS`).
    text = bytes(body).decode(errors="replace")[:100_000]
    return await api.store.write_first(
        due.receive_request, TriggerId(trigger), secret, text, delivery=delivery
    )
