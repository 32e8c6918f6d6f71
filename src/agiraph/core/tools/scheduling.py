"""Scheduling tools: create, list and cancel an agent's own triggers, and record its promises."""

import re
from typing import Annotated, Any, cast

from pydantic import Field

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.persons import is_person, means_a_person
from agiraph.core.domain.provenance.labels import join
from agiraph.core.domain.provenance.sinks import Sink, WayOut
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.text.json_text import object_in
from agiraph.core.domain.text.plurals import times
from agiraph.core.domain.times.moments import as_text
from agiraph.core.domain.tools import ON_DEMAND
from agiraph.core.domain.triggers import LATE_AFTER, ActionType, Trigger
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import planning
from agiraph.core.services.triggers import actions, definitions, labelled, promises
from agiraph.core.services.triggers.kinds import registry
from agiraph.core.services.triggers.kinds.registry import KINDS
from agiraph.core.store import teams
from agiraph.core.store import triggers as rows
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import tool
from agiraph.core.tools.work import SUMMARY_CHARACTERS

Action = Annotated[
    str | dict[str, Any],
    Field(
        description="What you are to do then, in words you will understand without this thread; or "
        + ", ".join(
            (
                '{"type": "send_message", "to": …, "content": …}',
                '{"type": "run_node", "node_id": …}',
                *(action.guidance for action in actions.brought().values()),
            )
        )
    ),
]

_OBJECT = re.compile(r"\s*\{\s*[\"'}]")
"""How a text begins that is meant as an object."""
_ACTION_KEYS = {"type", "task"}

_KINDS = {type: kind for type, kind in KINDS.items() if kind.guidance}
"""The kinds that an agent may create."""
Type = Annotated[str, Field(json_schema_extra={"enum": list(_KINDS)})]

_DESCRIPTION = (
    "Schedule a future action of yours: at a time, again and again, or when something happens. "
    "Types and their config:\n"
    + "".join(f"- {type} {kind.guidance}\n" for type, kind in _KINDS.items())
    + """\
All take "max_fires", "until", and "misfire" (once, all, skip: what becomes of times at which
nobody was there). One recurring trigger is better than a chain of single ones. Every waking
costs money: take the longest interval that will do, and cancel what is no longer needed."""
)


async def _schedule_way_out(ctx: RunContext, call: ToolCall) -> WayOut | None:
    type, config = str(call.arguments["type"]), call.arguments["config"]
    does, payload = _action(call.arguments["action"])
    if type not in _KINDS:
        return None  # the tool refuses it; nobody is asked about it
    if does == "send_message" and not _is_for_person(str(payload.get("to", ""))):
        why = "it would send a message to others later"
        return WayOut(sink=Sink.CALLBACK, target=call.name, why=why)
    return await ctx.store.read(_wake, ctx, call, type, config)


async def _promise_way_out(ctx: RunContext, call: ToolCall) -> WayOut:
    given = [str(call.arguments.get(name) or "") for name in ("when", "repeats", "zone")]

    def decide(tx: Tx) -> WayOut:
        when, repeats, zone = given
        named = zone or teams.zone_of(tx, planning.person_for(tx, ctx.node))
        return _wake(tx, ctx, call, *promises.timing(tx, when, repeats, named))

    return await ctx.store.read(decide)


def _wake(tx: Tx, ctx: RunContext, call: ToolCall, type: str, config: dict[str, Any]) -> WayOut:
    """Return the way out of a call that wakes the agent later, within the limits or beyond."""
    excess = labelled.excess(tx, ctx.agent.id, type, definitions.zoned(tx, ctx.team.id, config))
    if excess is None:
        why = "it has effect after this work is done"
        return WayOut(sink=Sink.WAKE_SELF, target=call.name, why=why)
    return WayOut(sink=Sink.WAKE_BEYOND_LIMIT, target=call.name, why=excess)


def _is_for_person(address: str) -> bool:
    return means_a_person(address) or is_person(address.strip())


def _is_bounded(ctx: RunContext) -> bool:
    """Whether the bounds of labelled triggers apply: no person has allowed this call."""
    return bool(ctx.label) and not ctx.is_confirmed and ctx.team.trust != "open"


@tool(
    effect="transaction",
    way_out=_schedule_way_out,
    in_sight=ON_DEMAND,
    description=_DESCRIPTION,
)
def schedule(
    tx: Tx,
    ctx: RunContext,
    type: Type,
    config: dict[str, Any],
    action: Action,
) -> Answer:
    """Create a trigger of the agent."""
    does, payload = _action(action)
    made = definitions.create(
        tx,
        agent_id=ctx.agent.id,
        type=type,
        config=config,
        action=does,
        payload=payload,
        made_by=ctx.agent.id,
        made_in=ctx.node,
        label=ctx.label,
        is_bounded=(is_bounded := _is_bounded(ctx)),
    )
    bounds = labelled.describe_bounds(made.trigger, ctx.describe(ctx.label)) if is_bounded else ""
    return Done(f"Set: {_line(tx, made.trigger)}{bounds and '.'}{bounds}")


def _action(
    action: str | dict[str, Any],
) -> tuple[ActionType, dict[str, Any]]:
    if isinstance(action, str):
        action = _written_action(action) or {"type": "wake_agent", "task": action}
    kind = action.get("type", "wake_agent")
    payload = {key: value for key, value in action.items() if key != "type"}
    match kind:
        case "wake_agent":
            if not str(payload.get("task", "")).strip():
                raise Refused("action: say what is to be done then.")
        case "send_message" | "run_node":
            pass
        case _ if kind not in actions.brought():
            known = ", ".join(("wake_agent", "send_message", "run_node", *actions.brought()))
            raise Refused(f"action: there is no type {kind!r}; there are {known}.")
        case _:
            pass
    if len(str(payload)) > SUMMARY_CHARACTERS:
        limit = f"{SUMMARY_CHARACTERS:,}"
        raise Refused(f"action: {limit} characters is the most; put the rest into a file.")
    return cast(ActionType, kind), payload


def _written_action(text: str) -> dict[str, Any] | None:
    """Return the action that a text spells out as an object; None for a task in words."""
    if not _OBJECT.match(text):
        return None
    action = object_in(text)
    if action is None or not action.keys() & _ACTION_KEYS:
        raise Refused(
            f"action: {text[:120]!r} is neither a task in words nor one of the objects that it may "
            "be. Give the object itself, not a string with it inside, or say in words what to do."
        )
    return action


@tool(effect="transaction", in_sight=ON_DEMAND)
def list_triggers(tx: Tx, ctx: RunContext) -> Answer:
    """List your active triggers, with ids, next times and costs."""
    found = rows.active_of_agent(tx, ctx.agent.id)
    listed = "\n".join(_line(tx, trigger) for trigger in found) or "You have no triggers."
    return Done(listed, label=join(trigger.label for trigger in found))


def _line(tx: Tx, trigger: Trigger) -> str:
    """Return a trigger as a line for its agent: cause, next time, counts, costs and task."""
    kind = registry.kind_of(trigger)
    what = trigger.payload.get("task") or trigger.payload.get("content") or trigger.action
    if trigger.due_at is not None:
        when = f"next at {as_text(trigger.due_at, trigger.zone)}"
    else:
        when = "next after you have rested" if kind.is_due_after_work else "when it happens"
    if trigger.due_at is not None and trigger.due_at < tx.now - LATE_AFTER:
        when = f"overdue since {as_text(trigger.due_at, trigger.zone)}"
    counts = f"fired {times(trigger.fired)}"
    if quiet := rows.count_nothing_to_do(tx, trigger.id):
        counts += f", nothing to do {times(quiet)}"
    if trigger.skipped:
        counts += f", skipped {trigger.skipped} (missed: {trigger.missed})"
    if trigger.gated:
        counts += f", slept on {times(trigger.gated)}"
    if trigger.gate:
        counts += f" ({trigger.gate})"
    cost = rows.cost(tx, trigger.id)
    spent = f", {cost.calls} calls, {cost.tokens:,} tokens, ${cost.usd:.4f}" if cost.calls else ""
    why = kind.describe(kind.read(trigger.config))
    return f"{trigger.id} {trigger.type}: {why}; {when}; {counts}{spent}: {str(what)[:200]}"


@tool(effect="transaction", in_sight=ON_DEMAND)
def cancel_trigger(
    tx: Tx,
    ctx: RunContext,
    trigger_id: Annotated[str, Field(description="As list_triggers shows it")],
) -> Answer:
    """Cancel one of your triggers that has served its purpose."""
    found = definitions.find(tx, ctx.team.id, trigger_id)
    if found.agent_id != ctx.agent.id:
        raise Refused(f"{found.id} is not yours; only its creator may cancel it.")
    if found.made_by != ctx.agent.id:
        raise Refused(f"{found.id} was not set up by you; ask the human if it should go.")
    if found.status not in ("active", "paused"):
        return Done(f"{found.id} is {found.status} already: {found.ended}.")
    definitions.cancel(tx, found.id)
    return Done(f"Cancelled {found.id}.")


@tool(
    effect="transaction",
    roles=frozenset({"coordinator"}),
    way_out=_promise_way_out,
    in_sight=ON_DEMAND,
    decides_work="new_work",
)
def promise(
    tx: Tx,
    ctx: RunContext,
    what: Annotated[str, Field(min_length=1, max_length=SUMMARY_CHARACTERS)],
    when: Annotated[str, Field(description="'2 hours', 'in 3 days', or 2030-05-20T09:00")] = "",
    repeats: Annotated[str, Field(description="Instead, to repeat it: cron, '0 9 * * MON'")] = "",
    zone: Annotated[str, Field(description="Of a time without an offset; else theirs")] = "",
) -> Answer:
    """Promise the human something for a time, or again and again, and be woken to keep it. Call it
    when you tell somebody that you will do something by a time. The human is sent what comes of it.
    """
    made = promises.make(
        tx,
        ctx.agent,
        ctx.node,
        what=what,
        when=promises.When(when, repeats, zone),
        label=ctx.label,
        is_bounded=_is_bounded(ctx),
    )
    kind = "trigger" if repeats.strip() else "reminder"
    did = Act(kind=kind, about=made.trigger.id, name=_times(made.trigger), words=what)
    return Done(f"Noted as {made.trigger.id}:\n{promises.as_line(tx, made)}", did=did)


def _times(trigger: Trigger) -> str:
    """Return when a trigger fires, in words for a person: the first time, and the second."""
    kind = registry.kind_of(trigger)
    if trigger.due_at is None:
        return ""
    at = as_text(trigger.due_at, trigger.zone)
    if kind.fires_once:
        return at
    second = kind.next_due(kind.read(trigger.config), trigger.due_at)
    return at if second is None else f"{at}, then {as_text(second, trigger.zone)} and so on"
