"""`agiraph channels`: the channels to you, and the pairing of a phone or mailbox."""

import click

from agiraph.api.feature_views.channels import ChannelView
from agiraph.cli.session import Columns, Told, command, connected, group, listing, printing, shown


@printing
async def _channels() -> Told:
    async with connected() as client:
        found = await client.channels()
    return listing(found, _CHANNELS, "No channels. Add a [channels.NAME] table to agiraph.toml.")


def _paired(one: ChannelView) -> str:
    return shown(one.address or f"nobody: agiraph channels pair {one.name}")


_CHANNELS: Columns[ChannelView] = (
    ("name!", lambda one: shown(one.name)),
    ("sends", lambda one: "everything" if len(one.kinds) == 6 else ", ".join(one.kinds)),
    ("paired with", lambda one: _paired(one) if one.is_two_way else "-"),
    ("unknown senders", lambda one: str(one.dropped) if one.is_two_way else ""),
)


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
