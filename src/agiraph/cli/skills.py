"""`agiraph skills`: list folders with a SKILL.md, and enable them for agents."""

from collections.abc import Iterable

import click
from rich.console import Console
from rich.table import Column, Table

from agiraph import config
from agiraph.cli.session import as_json, command, shown
from agiraph.cli.teams import json_option
from agiraph.domain.errors import Refused
from agiraph.domain.folders import GivenFolder
from agiraph.domain.time import SystemClock
from agiraph.extensions.skills import Skills
from agiraph.home import given_folders
from agiraph.home.layout import Home
from agiraph.redaction import environment

_COLOURS = {"on": "green", "off": "dim", "changed": "yellow", "faulty": "red"}


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def skills(context: click.Context, json_: bool) -> None:
    """List skills (folders with a SKILL.md); enable and disable them."""
    if context.invoked_subcommand is None:
        _list(json_)


@command
async def _list(json_: bool) -> None:
    settings = config.load(environment())
    home = Home.open(settings.home)
    found = Skills(home=home).listed(_named(home, settings.folders.values()))
    if json_:
        return click.echo(as_json(found))
    if not found:
        return click.echo(
            f"None. Put a folder with a SKILL.md into {home.path}/skills; docs/skills.md shows how."
        )
    table = Table(Column("id", no_wrap=True), "state", "", box=None)
    for one in found:
        table.add_row(shown(one.id), f"[{_COLOURS[one.state]}]{one.state}[/]", shown(one.summary))
    Console(emoji=False, soft_wrap=True).print(table)


def _named(home: Home, folders: Iterable[str]) -> list[GivenFolder]:
    """Return the folders that agiraph.toml names, as far as they can be given."""
    given: list[GivenFolder] = []
    for text in folders:
        try:
            given += given_folders.check(home.path, [text])
        except Refused:
            continue
    return given


@skills.command("enable")
@click.argument("name")
@click.option("--sha256", default="", help="The hash that you have read; another one is refused.")
@json_option
@command
async def enable_skill(name: str, sha256: str, json_: bool) -> None:
    """Enable the skill NAME, with exactly the files it has now. Read them first.

    NAME is a folder in skills/ of the home, or the whole path of a folder's .claude/skills/NAME.
    Agents then follow it as they follow you.
    """
    home = Home.open(config.load(environment()).home)
    one = Skills(home=home).enable(name, sha256=sha256, at=SystemClock().now())
    if json_:
        return click.echo(as_json(one))
    click.echo(f"Enabled {shown(one.id)} (sha256 {one.sha256}).")
    click.echo(f"Agents see: {shown(one.name)}: {shown(one.description)}")
    click.echo("A running agiraph offers it to agents from their next task on.")


@skills.command("disable")
@click.argument("name")
@command
async def disable_skill(name: str) -> None:
    """Disable the skill NAME."""
    home = Home.open(config.load(environment()).home)
    click.echo(f"Disabled {shown(Skills(home=home).disable(name))}.")
