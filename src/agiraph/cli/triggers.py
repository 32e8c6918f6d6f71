"""`agiraph triggers`, `agiraph schedule`: what starts a team's agents by time, event or request."""

from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console

from agiraph.api.views import CreatedTriggerView
from agiraph.cli import tables
from agiraph.cli.research import SCHEDULES, cron_of
from agiraph.cli.session import as_json, command, connected, source
from agiraph.cli.teams import json_option
from agiraph.domain.moments import as_text, local, parse_deadline
from agiraph.domain.triggers import TriggerType


@click.command()
@click.argument("team")
@click.option("--cancel", metavar="ID", help="End this trigger; work that it started goes on.")
@json_option
@command
async def triggers(team: str, cancel: str | None, json_: bool) -> None:
    """List the triggers of a TEAM: when each fires next, and how often it fired."""
    if cancel is not None:
        async with connected() as client:
            await client.cancel_trigger((await client.team(team)).id, cancel)
        return click.echo(f"{cancel} has ended.")
    async with source() as found:
        listed = await found.triggers((await found.team(team)).id)
    if json_:
        return click.echo(as_json(listed))
    if not listed:
        return click.echo(f"The team {team!r} has no triggers.")
    Console(emoji=False).print(tables.of_triggers(listed))


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
@json_option
@command
async def schedule(
    team: str,
    task: str,
    at: str | None,
    every: str | None,
    event: str | None,
    webhook: bool,
    remind: bool,
    agent: str | None,
    zone: str | None,
    json_: bool,
) -> None:
    """Have a TEAM (its id or name) do a TASK later: at a time, again and again, or on an event."""
    if sum(each is not None for each in (at, every, event)) + webhook != 1:
        raise click.UsageError("Say when, by one of --at, --every, --event and --webhook.")
    async with connected() as client:
        own = zone or (await client.me()).zone or "UTC"
        type, config = _when(at, every, event, own)
        made = await client.create_trigger(
            (await client.team(team)).id,
            type,
            agent=agent,
            config={**config, "zone": own},
            action="send_message" if remind else "wake_agent",
            payload={"to": "human", "content": task} if remind else {"task": task},
        )
        url = client.url
    if json_:
        return click.echo(as_json(made))
    for line in _made(made, url):
        click.echo(line)


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
