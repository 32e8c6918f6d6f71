"""`agiraph away`: say until when you are away, or that you are back."""

import contextlib
from datetime import UTC, datetime

import click

from agiraph.api.views import PersonView
from agiraph.cli.session import as_json, command, connected
from agiraph.cli.teams import json_option
from agiraph.domain import moments
from agiraph.domain.errors import Refused
from agiraph.domain.moments import parse_deadline

UNTIL_HELP = "A day (2030-05-20), a time (2030-05-20T09:00) in your zone, or how long: '3 days'."


@click.command()
@click.option("--until", metavar="DATE", help=UNTIL_HELP)
@click.option("--back", is_flag=True, help="You are back.")
@json_option
@command
async def away(until: str | None, back: bool, json_: bool) -> None:
    """Say until when you are away, or that you are back; without options, show it.

    Nothing is sent to your channels while you are away. Questions wait in the inbox; those with a
    time limit are given up after it, and the work goes on with its default.
    """
    if back and until is not None:
        raise click.UsageError("Say --until or --back, not both.")
    async with connected() as client:
        me = await client.me()
        if back or until is not None:
            me = await client.set_away(None if until is None else _moment(until, me.zone))
    click.echo(as_json(me) if json_ else _told(me))


def _moment(text: str, zone: str) -> datetime:
    """Return the moment that a person wrote. Without an offset it is in their zone, or in this
    machine's if theirs is not known."""
    with contextlib.suppress(ValueError):
        if not zone:
            return datetime.fromisoformat(text.strip()).astimezone()
    try:
        return parse_deadline(text, datetime.now(UTC), zone or "UTC")
    except Refused as error:
        raise click.UsageError(
            f"{text!r} is not a time; write 2030-05-20, 2030-05-20T09:00 or '3 days'."
        ) from error


def _told(me: PersonView) -> str:
    if me.away_until is None:
        return "You are here: messages are sent to your channels."
    until = me.away_until
    local = moments.local(until, me.zone) if me.zone else until.astimezone()
    return (
        f"You are away until {local:%A, %d %B %Y %H:%M}: nothing is sent to your channels until "
        "then. Back earlier: agiraph away --back"
    )
