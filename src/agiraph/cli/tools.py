"""`agiraph tools`: list the tools, engines, channels and providers of your own, and enable them."""

import sys
from contextlib import redirect_stdout

import click
from rich.console import Console
from rich.table import Column, Table

from agiraph import config
from agiraph.cli.session import as_json, command, shown
from agiraph.cli.teams import json_option
from agiraph.domain.errors import Refused
from agiraph.domain.time import SystemClock
from agiraph.extensions.finding import ExtensionStatus, find_one
from agiraph.extensions.loading import Extensions
from agiraph.home.layout import Home
from agiraph.redaction import environment

HASH_CHARACTERS = 12
_COLOURS = {"on": "green", "off": "dim", "changed": "yellow", "faulty": "red"}


def _extensions() -> Extensions:
    settings = config.load(environment())
    home = Home.open(settings.home)
    given = settings.extensions
    return Extensions(home=home, secrets=given.secrets, rules=given.rules)


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def tools(context: click.Context, json_: bool) -> None:
    """List tools, engines, channels and providers of your own; enable and disable them."""
    if context.invoked_subcommand is None:
        _list(json_)


@command
async def _list(json_: bool) -> None:
    extensions = _extensions()
    # What own code prints while it is imported is no part of our output.
    with redirect_stdout(sys.stderr):
        found = await extensions.listed()
    if json_:
        return click.echo(as_json(found))
    if extensions.problem:
        click.echo(extensions.problem, err=True)
    if not found:
        return click.echo(
            f"None. Put a Python file into {extensions.home.path}/tools; docs/own-tools.md shows "
            "how."
        )
    table = Table(Column("id", no_wrap=True), "state", "sha256", "", box=None)
    for one in found:
        state = f"[{_COLOURS[one.state]}]{one.state}[/]"
        table.add_row(shown(one.id), state, one.sha256[:HASH_CHARACTERS], shown(one.summary))
    Console(emoji=False, soft_wrap=True).print(table)


@tools.command("enable")
@click.argument("name")
@click.option("--sha256", default="", help="The hash that you have read; another one is refused.")
@json_option
@command
async def enable_tool(name: str, sha256: str, json_: bool) -> None:
    """Enable the file or package NAME, with exactly the content it has now.

    Its code then runs inside of the runtime, with all that your user may do. Read it first.
    """
    extensions = _extensions()
    with redirect_stdout(sys.stderr):
        one = await extensions.enable(name, sha256=sha256, at=SystemClock().now())
    if json_:
        return click.echo(as_json(one))
    click.echo(f"Enabled {shown(one.id)} (sha256 {one.sha256}).")
    click.echo(f"It offers: {shown(one.summary)}.")
    click.echo(_when(one))


def _when(one: ExtensionStatus) -> str:
    if one.kind == "tools":
        return "A running agiraph offers it to agents from their next task on."
    return "Name it in agiraph.toml, and restart agiraph."


@tools.command("disable")
@click.argument("name")
@command
async def disable_tool(name: str) -> None:
    """Disable the file or package NAME. A running agiraph drops its tools with the next task."""
    extensions = _extensions()
    try:
        identity = find_one(extensions.home, name).id
    except Refused:
        identity = name  # its file is gone, but not the consent
    with redirect_stdout(sys.stderr):
        await extensions.disable(identity)
    click.echo(f"Disabled {shown(identity)}.")
