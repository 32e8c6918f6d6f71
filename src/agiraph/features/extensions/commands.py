"""`agiraph tools` and `agiraph skills`: list code and skills of your own, and enable them; and what
`agiraph doctor` says of them."""

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout

import click

from agiraph import config
from agiraph.cli.session import Columns, Told, command, group, plain_console, printing, shown, table
from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.records.channels import WantedChannel
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.home import health as home_health
from agiraph.core.home.layout import Home
from agiraph.doctor.checkup import Checkup
from agiraph.features.extensions.finding import find_one
from agiraph.features.extensions.loading import Extensions, unopened
from agiraph.features.extensions.pinned import Status
from agiraph.features.extensions.skills import Skills
from agiraph.redaction import environment
from agiraph.sandbox.folders import given_folders
from agiraph.web.access import WantedEngine

HASH_CHARACTERS = 12
_COLOURS = {"on": "green", "off": "dim", "changed": "yellow", "faulty": "red"}
_hash = click.option(
    "--sha256", default="", help="The hash that you have read; another one is refused."
)


def _extensions() -> Extensions:
    return unopened(config.load(environment()))


_SKILLS: Columns[Status] = (
    ("id!", lambda one: shown(one.id)),
    ("state", lambda one: f"[{_COLOURS[one.state]}]{one.state}[/]"),
    ("", lambda one: shown(one.summary)),
)
_TOOLS: Columns[Status] = (
    *_SKILLS[:2],
    ("sha256", lambda one: one.sha256[:HASH_CHARACTERS]),
    *_SKILLS[2:],
)


@printing
async def _tools() -> Told:
    extensions = _extensions()
    # What own code prints while it is imported is no part of our output.
    with redirect_stdout(sys.stderr):
        found = await extensions.listed()
    folder = f"{extensions.home.path}/tools"

    def show() -> None:
        if extensions.problem:
            click.echo(extensions.problem, err=True)
        if found:
            return plain_console().print(table(found, _TOOLS))
        return click.echo(f"None. Put a Python file into {folder}; docs/own-tools.md shows how.")

    return found, show


@group(_tools)
def tools() -> None:
    """List tools, engines, channels and providers of your own; enable and disable them."""


@tools.command("enable")
@click.argument("name")
@_hash
@printing
async def enable_tool(name: str, sha256: str) -> Told:
    """Enable the file or package NAME, with exactly the content it has now.

    Its code then runs inside of the runtime, with all that your user may do. Read it first.
    """
    extensions = _extensions()
    with redirect_stdout(sys.stderr):
        one = await extensions.enable(name, sha256=sha256, at=SystemClock().now())
    then = "Name it in agiraph.toml, and restart agiraph."
    if one.kind == "tools":
        then = "A running agiraph offers it to agents from their next task on."
    return one, (
        f"Enabled {shown(one.id)} (sha256 {one.sha256}).\nIt offers: {shown(one.summary)}.\n{then}"
    )


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


@printing
async def _skills() -> Told:
    settings = config.load(environment())
    home = Home.open(settings.home)
    found = Skills(home=home).listed(_named(home, settings.folders.values()))
    if found:
        return found, lambda: plain_console().print(table(found, _SKILLS))
    how = f"Put a folder with a SKILL.md into {home.path}/skills; docs/skills.md shows how."
    return found, f"None. {how}"


def _named(home: Home, folders: Iterable[str]) -> list[GivenFolder]:
    """Return the folders that agiraph.toml names, as far as they can be given."""
    given: list[GivenFolder] = []
    for text in folders:
        try:
            given += given_folders.check(home.path, [text])
        except Refused:
            continue
    return given


@group(_skills)
def skills() -> None:
    """List skills (folders with a SKILL.md); enable and disable them."""


@skills.command("enable")
@click.argument("name")
@_hash
@printing
async def enable_skill(name: str, sha256: str) -> Told:
    """Enable the skill NAME, with exactly the files it has now.

    NAME is a folder in skills/ of the home, or the whole path of a folder's .claude/skills/NAME.
    Agents then follow it as they follow you. Read its files first.
    """
    home = Home.open(config.load(environment()).home)
    one = Skills(home=home).enable(name, sha256=sha256, at=SystemClock().now())
    return one, (
        f"Enabled {shown(one.id)} (sha256 {one.sha256}).\n"
        f"Agents see: {shown(one.name)}: {shown(one.description)}\n"
        "A running agiraph offers it to agents from their next task on."
    )


@skills.command("disable")
@click.argument("name")
@command
async def disable_skill(name: str) -> None:
    """Disable the skill NAME."""
    home = Home.open(config.load(environment()).home)
    click.echo(f"Disabled {shown(Skills(home=home).disable(name))}.")


async def check(checkup: Checkup) -> None:
    """Name the extensions that are faulty, have changed or are missing."""
    home = checkup.settings.home
    if not home.is_dir() or home_health.why_not_writable(home):
        return  # the check of the home folder has reported this already
    extensions: Extensions = checkup.parts.get(Extensions) or unopened(checkup.settings)
    # What own code prints while it is imported is no part of our output.
    with redirect_stdout(sys.stderr):
        found = await extensions.listed()
    broken = [f"{one.id}: {one.summary}" for one in found if one.state in ("changed", "faulty")]
    broken += [extensions.problem] if extensions.problem else []
    broken += _missing(checkup, extensions)
    on = [one for one in found if one.state == "on"]
    if broken:
        checkup.problem(
            "own tools", f"{len(broken)} cannot be used; `agiraph tools` lists all.", *broken
        )
    elif on:
        checkup.fine(
            "own tools", f"{len(on)} enabled.", *(f"{one.id}: {one.summary}" for one in on)
        )
    _check_skills(checkup, extensions.home)
    if off := [one.id for one in found if one.state == "off"]:
        checkup.note(
            "own tools", f"Not enabled: {', '.join(off[:20])}. To use one: agiraph tools enable."
        )


def _check_skills(checkup: Checkup, home: Home) -> None:
    found = Skills(home=home).listed()
    broken = [f"{one.id}: {one.summary}" for one in found if one.state in ("changed", "faulty")]
    if broken:
        checkup.problem("skills", f"{len(broken)} cannot be used.", *broken)
    elif on := [one.id for one in found if one.state == "on"]:
        checkup.fine("skills", f"{len(on)} enabled.", *on)


def _missing(checkup: Checkup, extensions: Extensions) -> list[str]:
    """Return what the settings name and no enabled extension declares."""
    settings, said = checkup.settings, list[str]()
    engine = settings.web.engine
    if isinstance(engine, WantedEngine) and ("engines", engine.own_name) not in extensions.declared:
        said.append(f"[search] names {engine.name}, which no enabled file in engines/ declares.")
    own = {name for kind, name in extensions.declared if kind == "tools"}
    said += [
        f"[tools.{name}] names a tool that no enabled file in tools/ declares."
        for name in settings.features["extensions"]
        if name not in own
    ]
    for name, channel in settings.features.get("channels", {}).items():
        if not isinstance(channel, WantedChannel):
            continue
        if ("channels", channel.own_name) not in extensions.declared:
            said.append(
                f"[channels.{name}] names own:{channel.own_name}, which no enabled file in "
                "channels/ declares."
            )
    return said
