"""`agiraph zone`: say in which time zone you live."""

import click

from agiraph.api.views import PersonView
from agiraph.cli.session import as_json, command, connected
from agiraph.cli.teams import json_option


@click.command()
@click.argument("name", required=False)
@json_option
@command
async def zone(name: str | None, json_: bool) -> None:
    """Say in which time zone you live, by its NAME, such as Europe/Berlin; without it, show it.

    Agents are told times in it, and a time without an offset means it: in promises, triggers and
    quiet hours.
    """
    async with connected() as client:
        me = await client.me() if name is None else await client.set_zone(name.strip())
    click.echo(as_json(me) if json_ else _told(me))


def _told(me: PersonView) -> str:
    if not me.zone:
        return (
            "Your time zone is not known, so times are in UTC. Say it: agiraph zone Europe/Berlin"
        )
    return f"Your time zone is {me.zone}."
