"""`agiraph channels`: the channels to you, and the pairing of a phone or mailbox."""

import click

from agiraph.cli.session import Told, command, connected, group, printing, shown, table


@printing
async def _channels() -> Told:
    async with connected() as client:
        found = await client.channels()
    rows: list[tuple[str, ...]] = []
    for each in found:
        paired = each.address or "nobody: agiraph channels pair " + each.name
        kinds = "everything" if len(each.kinds) == 6 else ", ".join(each.kinds)
        dropped = str(each.dropped) if each.is_two_way else ""
        rows.append((shown(each.name), kinds, shown(paired) if each.is_two_way else "-", dropped))
    if not rows:
        return found, "No channels. Add a [channels.NAME] table to agiraph.toml."
    return found, table(rows, "name!", "sends", "paired with", "unknown senders")


@group(_channels)
def channels() -> None:
    """List your channels; pair your phone or mailbox with one."""


@channels.command("pair")
@click.argument("channel")
@printing
async def pair(channel: str) -> Told:
    """Print a code for CHANNEL. Whoever sends it there is paired and speaks in your name."""
    async with connected() as client:
        made = await client.pair_channel(channel)

    def show() -> None:
        click.echo(made.hint)
        click.echo(f"It works once, until {made.until.astimezone():%H:%M}.", err=True)

    return made, show


@channels.command("unpair")
@click.argument("channel")
@command
async def unpair(channel: str) -> None:
    """Forget who is paired with CHANNEL."""
    async with connected() as client:
        await client.unpair_channel(channel)
    click.echo(f"Nobody is paired with {channel} any more.")
