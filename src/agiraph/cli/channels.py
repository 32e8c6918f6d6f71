"""`agiraph channels`: list the channels, and pair a phone or a mailbox with one."""

import click
from rich.console import Console
from rich.table import Column, Table

from agiraph.cli.session import as_json, command, connected, shown
from agiraph.cli.teams import json_option


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def channels(context: click.Context, json_: bool) -> None:
    """List your channels; pair your phone or mailbox with one."""
    if context.invoked_subcommand is None:
        _list(json_)


@command
async def _list(json_: bool) -> None:
    async with connected() as client:
        found = await client.channels()
    if json_:
        return click.echo(as_json(found))
    if not found:
        return click.echo("No channels. Add a [channels.NAME] table to agiraph.toml.")
    table = Table(Column("name", no_wrap=True), "sends", "paired with", "unknown senders", box=None)
    for each in found:
        paired = each.address or "nobody: agiraph channels pair " + each.name
        kinds = "everything" if len(each.kinds) == 6 else ", ".join(each.kinds)
        dropped = str(each.dropped) if each.is_two_way else ""
        table.add_row(shown(each.name), kinds, shown(paired) if each.is_two_way else "-", dropped)
    Console(emoji=False).print(table)


@channels.command("pair")
@click.argument("channel")
@json_option
@command
async def pair(channel: str, json_: bool) -> None:
    """Print a code for CHANNEL. Whoever sends it there is paired and speaks in your name."""
    async with connected() as client:
        made = await client.pair_channel(channel)
    if json_:
        return click.echo(as_json(made))
    click.echo(made.hint)
    click.echo(f"It works once, until {made.until.astimezone():%H:%M}.", err=True)


@channels.command("unpair")
@click.argument("channel")
@command
async def unpair(channel: str) -> None:
    """Forget who is paired with CHANNEL."""
    async with connected() as client:
        await client.unpair_channel(channel)
    click.echo(f"Nobody is paired with {channel} any more.")
