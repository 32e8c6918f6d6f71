"""`agiraph status`: the running server, what fails in it, and how it confines commands."""

import click

from agiraph.api.server_views import StatusView
from agiraph.cli.session import as_json, command, connected
from agiraph.cli.teams import json_option


@click.command()
@json_option
@command
async def status(json_: bool) -> None:
    """Show the running server: its version, what fails, and how commands are confined."""
    async with connected() as client:
        found = await client.status()
        url = client.url
    if json_:
        return click.echo(as_json(found))
    for line in _lines(url, found):
        click.echo(line)


def _lines(url: str, found: StatusView) -> list[str]:
    sandbox = found.sandbox
    mark = "✗" if sandbox.level == "none" else "✓"
    lines = [f"✓ server {found.build} at {url}"]
    lines += [f"✗ background work: {sentence}" for sentence in found.failing]
    lines += [f"{mark} sandbox {sandbox.level}: {sandbox.description}"]
    lines += [f"    instead of {reason}" for reason in sandbox.reasons]
    return [*lines, *(f"    not enforced: {way}" for way in sandbox.not_held)]
