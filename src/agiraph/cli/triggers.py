"""`agiraph triggers` and `agiraph schedule`: list, create, change and run a team's triggers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from rich.table import Column

from agiraph.cli.session import Columns, Told, connected, listing, printing, shown, source
from agiraph.cli.talk import SCHEDULES, cron_of
from agiraph.cli.teams import coloured
from agiraph.client import Client
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.times.moments import as_text, local, parse_deadline
from agiraph.core.domain.triggers import ActionType, Firing, TriggerType

if TYPE_CHECKING:
    from agiraph.api.views import CreatedTriggerView, TriggerView

_TRIGGERS: Columns[TriggerView] = (
    ("id!", lambda one: one.id),
    ("type", lambda one: one.type),
    ("status", lambda one: coloured(one.status)),
    (Column("due", min_width=10), lambda one: _due(one)),  # a whole date
    ("fired", lambda one: _fired(one)),
    ("skipped", lambda one: str(one.skipped)),
    ("what", lambda one: shown(_words(one.payload)[:60])),
)
_TEXT_OF: dict[ActionType, str] = {
    "wake_agent": "task",
    "send_message": "content",
    "research": "question",
}
"""The name of the text in what each action is given."""


@click.command()
@click.argument("team")
@click.option("--cancel", metavar="ID", help="End this trigger; work that it started goes on.")
@click.option("--run", metavar="ID", help="Fire this trigger once, now; its schedule stays.")
@click.option("--edit", metavar="ID", help="Change this trigger, by the options below.")
@click.option("--task", metavar="TEXT", help="With --edit: what is to be done.")
@click.option("--at", "at", metavar="WHEN", help="With --edit: another time, as for schedule.")
@click.option("--every", metavar="WHEN", help="With --edit: another schedule, as for schedule.")
@click.option("--event", metavar="PATTERN", help="With --edit: another event, as for schedule.")
@printing
async def triggers(team: str, task: str | None, **given: Any) -> Told:
    """List the triggers of a TEAM: when each fires next, and how often it fired; run, change or end
    one."""
    when = {key: given.pop(key) for key in ("at", "every", "event")}
    acts = {key: id for key, id in given.items() if id is not None}
    times = sum(each is not None for each in when.values())
    if len(acts) > 1 or times > 1:
        raise click.UsageError("Give one of --cancel, --run and --edit, and one time for --edit.")
    if ("edit" in acts) != (times > 0 or task is not None):
        raise click.UsageError("--edit needs what changes: --task, --at, --every or --event.")
    if not acts:
        async with source() as found:
            listed = await found.triggers((await found.team(team)).id)
        return listing(listed, _TRIGGERS, f"The team {team!r} has no triggers.")
    async with connected() as client:
        team_id = (await client.team(team)).id
        if "edit" in acts:
            return await _edit(client, team_id, acts["edit"], task, when)
        if "run" in acts:
            done = await client.run_trigger(team_id, acts["run"])
            return done, _ran(done)
        await client.cancel_trigger(team_id, acts["cancel"])
    click.echo(f"{acts['cancel']} has ended.")
    raise click.exceptions.Exit(0)


def _ran(done: Firing) -> str:
    if done.outcome == "skipped":
        return f"{done.trigger_id} did not run: {done.reason}."
    work = f" as {done.node_id}" if done.node_id else ""
    return f"{done.trigger_id} runs now{work}; its schedule stays."


async def _edit(
    client: Client, team_id: str, id: str, task: str | None, when: dict[str, str | None]
) -> Told:
    """Change the text of a trigger, when it fires, or both; the rest of each stays."""
    found = [one for one in await client.triggers(team_id) if one.id.endswith(id)]
    if len(found) != 1:
        raise NotFound("trigger", id, known="`agiraph triggers TEAM` lists them.")
    [old] = found
    changes: dict[str, Any] = {}
    if task is not None:
        if old.action not in _TEXT_OF:
            raise Refused(f"{old.id} has no text that could be changed.")
        changes["payload"] = {**old.payload, _TEXT_OF[old.action]: task}
    if any(when.values()):
        type, config = _when(when["at"], when["every"], when["event"], old.zone)
        if type != old.type:
            raise Refused(f"{old.id} is {old.type}; make a new trigger for another kind of time.")
        changes["config"] = {**old.config, **config}
    new = await client.change_trigger(team_id, old.id, **changes)
    due = f"; next at {as_text(new.due_at, new.zone)}" if new.due_at else ""
    return new, f"{new.id} is changed{due}."


def _due(one: TriggerView) -> str:
    due = f"{local(one.due_at, one.zone):%Y-%m-%d %H:%M %Z}" if one.due_at else ""
    return f"{due} [red]overdue[/]" if one.is_overdue else due


def _fired(one: TriggerView) -> str:
    quiet = one.nothing_to_do
    return f"{one.fired} ({quiet} with nothing to do)" if quiet else str(one.fired)


def _words(payload: dict[str, Any]) -> str:
    """Return what a trigger does, in the words of its creator."""
    words = (str(payload[key]) for key in ("task", "question", "content") if payload.get(key))
    return next(words, "")


@click.command()
@click.argument("team")
@click.argument("task")
@click.option("--at", "at", metavar="WHEN", help="Once: '2 hours', '3 days' or 2030-05-20T09:00.")
@click.option(
    "--every",
    metavar="WHEN",
    help=f"Again and again: {', '.join(SCHEDULES)}, or a cron expression.",
)
@click.option("--event", metavar="PATTERN", help="When the team has such an event: node.failed.")
@click.option("--webhook", is_flag=True, help="When a program calls its address, with a secret.")
@click.option("--remind", is_flag=True, help="Send you TASK as a message; no agent works.")
@click.option("--agent", help="Who does it; without it the coordinator.")
@click.option("--zone", help="The time zone of the times. [default: your own]")
@printing
async def schedule(
    team: str, task: str, remind: bool, agent: str | None, zone: str | None, **when: Any
) -> Told:
    """Have a TEAM (its id or name) do a TASK later: at a time, again and again, or on an event."""
    if sum(each not in (None, False) for each in when.values()) != 1:
        raise click.UsageError("Say when, by one of --at, --every, --event and --webhook.")
    async with connected() as client:
        own = zone or (await client.me()).zone or "UTC"
        type, config = _when(when["at"], when["every"], when["event"], own)
        made = await client.create_trigger(
            (await client.team(team)).id,
            type,
            agent=agent,
            config={**config, "zone": own},
            action="send_message" if remind else "wake_agent",
            payload={"to": "human", "content": task} if remind else {"task": task},
        )
    return made, "\n".join(_made(made, client.url))


def _when(
    at: str | None, every: str | None, event: str | None, zone: str
) -> tuple[TriggerType, dict[str, Any]]:
    """Return the type and configuration of a trigger from the one option that says when; a webhook
    without any."""
    if at is not None:
        due = local(parse_deadline(at, datetime.now(UTC), zone), zone)
        return "at_time", {"at": due.isoformat(timespec="seconds")}
    if every is not None:
        return "scheduled", {"cron": cron_of(every)}
    return ("webhook", {}) if event is None else ("on_event", {"event_pattern": event})


def _made(made: CreatedTriggerView, url: str) -> list[str]:
    due = f", first at {as_text(made.due_at, made.zone)}" if made.due_at else ""
    lines = [f"Scheduled as {made.id}{due}."]
    if made.secret is not None:
        lines.append(f"Call it: POST {url}/api/hooks/{made.id}")
        lines.append(f"With the header X-Agiraph-Secret: {made.secret} (shown only once)")
    return [*lines, f"End it with: agiraph triggers {made.team_id} --cancel {made.id}"]
