"""`agiraph new`, `set`, `goal`, `changes`, `undo`: give a team a goal, settings and folders."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from rich.table import Column
from rich.text import Text

from agiraph import location
from agiraph.cli.goal import Remote
from agiraph.cli.session import (
    Columns,
    F,
    Told,
    as_json,
    clean,
    command,
    connected,
    json_option,
    listing,
    plain_console,
    printing,
)
from agiraph.client.teams import NewTeam
from agiraph.core.domain.agents import Trust, name_from_goal, split_access
from agiraph.core.domain.work import EFFORTS, Line, LineKind
from agiraph.redaction import environment

if TYPE_CHECKING:
    from agiraph.api.file_views import FolderChangeView
    from agiraph.api.views import TeamView

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Interval(click.ParamType[float]):
    """A length of time such as 30m, 2h or 1d, in seconds; `never` is 0."""

    name = "interval"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        if value in ("never", "off", "0"):
            return 0.0
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", str(value).strip().lower())
        if found is None:
            self.fail(
                f"{value!r} is not a length of time; write 30m, 2h or 1d, or never.", param, ctx
            )
        return float(found[1]) * UNITS[found[2]]


_OPTIONS: dict[str, dict[str, Any]] = {
    "--mode": {
        "type": click.Choice(["finite", "infinite"]),
        "help": "finite: work until the goal is reached. infinite: work in cycles without an end.",
    },
    "--every": {
        "type": Interval(),
        "help": "How long without work until the coordinator acts by itself: 30m, 2h, 1d or never.",
    },
    "--review": {
        "type": click.Choice(["auto", "always", "never"]),
        "help": "When a reviewer judges results before they count; auto: if a machine cannot.",
    },
    "--trust": {
        "type": click.Choice(["strict", "standard", "open"]),
        "help": "What the team may do by itself after it has read untrusted text; open is for "
        "throw-away homes and containers.",
    },
    "--folder": {
        "multiple": True,
        "metavar": "PATH[:ro|rw]",
        "help": "A folder of yours that the team may read, or with :rw also change; one option a "
        "folder.",
    },
    "--effort": {
        "type": click.Choice(EFFORTS),
        "help": "How much the models of the team think.",
    },
    "--accept": {
        "multiple": True,
        "metavar": "LINE",
        "help": "What must be true when the goal is reached; one option a line. `answer` means "
        "that any answer is enough.",
    },
    "--accept-as": {
        "multiple": True,
        "type": (click.Choice(get_args(LineKind)), str),
        "metavar": "KIND LINE",
        "help": "The same with the evidence that proves it: `file`, `ran` for a command, or "
        "`judged` by a reviewer.",
    },
    "--turns": {"type": click.IntRange(1)},
    "--tokens": {"type": click.IntRange(1)},
}
"""The options that several commands have."""
NONE_WORDS = {"quiet_hours": "none", "channel": "all"}
"""What a person writes to take such a setting away."""


def option(name: str, also: str = "", **more: Any) -> Callable[[F], F]:
    """Return a click option as `_OPTIONS` has it; `also` is added to its help."""
    given = {**_OPTIONS.get(name, {}), **more}
    if also:
        given["help"] = f"{given['help']} {also}"
    return click.option(name, **given)


def money(help: str, name: str = "usd", *, min_open: bool = True) -> Callable[[F], F]:
    """Return the option for a limit in dollars."""
    amount = click.FloatRange(min=0, min_open=min_open)
    return click.option("--budget", "--usd", name, type=amount, help=help)


def lines_with_kinds(
    plain: Sequence[str], with_kinds: Sequence[tuple[LineKind, str]]
) -> tuple[str | Line, ...]:
    """Return the acceptance lines of both options."""
    return (*plain, *(Line(line, kind) for kind, line in with_kinds))


def new_team(given: dict[str, Any]) -> NewTeam:
    """Return the settings of a new team from options; those that were not given are left out."""
    accept, accept_as = given.pop("accept"), given.pop("accept_as")
    limits = {name: given.pop(name) for name in ("turns", "tokens", "usd", "seconds")}
    limits = {name: most for name, most in limits.items() if most is not None}
    made: dict[str, Any] = {name: value for name, value in given.items() if value}
    if limits:
        made["budget"] = limits
    if folders := made.pop("folder", None):
        made["folders"] = [absolute_folder(folder) for folder in folders]
    return NewTeam(**made, acceptance=lines_with_kinds(accept, accept_as))


def confirm_open(trust: Trust | None, name: str) -> None:
    """Have the person type the team's name before a team is set to `open`."""
    if trust != "open":
        return
    click.echo(
        "An open team runs commands with network and sends what it knows wherever a page tells it "
        "to. Use it only in a container or a home that you can throw away."
    )
    if click.prompt(f"Type the team's name ({clean(name)}) to go on").strip() != name:
        raise click.UsageError("That is not the team's name; nothing was changed.")


def absolute_folder(folder: str) -> str:
    """Return `PATH[:ro|rw]` with an absolute path: the server runs in another folder. A plain word
    that names no folder here is left as it is: agiraph.toml may name it."""
    path, access = split_access(folder)
    found = Path(path).expanduser()
    is_name = "/" not in folder and not found.exists()
    return folder if is_name else f"{found.absolute()}:{access}"


def _told_folders(team: TeamView) -> list[str]:
    """Return what a person is told of the folders that they gave."""
    return [
        f"The team {'reads and changes' if one.access == 'rw' else 'reads'} {clean(one.path)}, "
        f"as folders/{clean(one.name)}."
        for one in team.folders
    ]


@click.command()
@click.argument("goal")
@option("--name", default="", help="The team's name.  [default: made from the goal]")
@option("--mode", default="finite", show_default=True)
@option("--every", default="1h", show_default=True)
@option("--review", default="auto", show_default=True)
@option("--trust", default="standard", show_default=True)
@option("--folder")
@option("--model", default="", help="The coordinator's model, as provider/model.")
@option("--effort")
@money("The most dollars for the work on this goal.", min_open=False)
@option("--turns", help="The most turns.  [default: 500]")
@option("--tokens", help="The most tokens for the work on this goal.")
@option("--accept")
@option("--accept-as")
@click.option("--wait", "waits", is_flag=True, help="Show progress until the goal is reached.")
@json_option
@command
async def new(goal: str, name: str, waits: bool, json_: bool, **given: Any) -> None:
    """Create a team that works on a GOAL in the background."""
    if waits and given["mode"] == "infinite":
        raise click.UsageError(
            "An infinite team never ends, so --wait would never return: leave out --wait."
        )
    if waits and json_:
        raise click.UsageError("--wait is for people and --json for programs: choose one.")
    confirm_open(given["trust"], name.strip() or name_from_goal(goal))
    interval = given.pop("every")
    async with connected() as client:
        settings = new_team({**given, "seconds": None, "name": name, "interval": interval})
        team = await client.create_team(goal, **settings)
        if waits:
            home = location.find(environment()).home
            code = await Remote(client, plain_console(), home).watch(team)
            raise click.exceptions.Exit(code)
    if json_:
        return click.echo(as_json(team))
    click.echo(f"{clean(team.name)} {team.id}")
    for line in _told_folders(team):
        click.echo(line)
    click.echo(f"Watch the team: agiraph tail {team.id}")
    click.echo(f"Talk to its coordinator: agiraph chat {team.id}")


@click.command()
@click.argument("team")
@option("--name", help="The team's name.")
@option("--mode")
@option("--every")
@option("--review")
@option("--trust")
@option("--folder", also="All of them, or none.")
@option("--model", help="The coordinator's model, as provider/model.")
@option("--effort", type=click.Choice([*EFFORTS, "default"]))
@click.option("--soul", help="The team's character: the new content of its SOUL.md.")
@click.option("--workers", type=click.IntRange(1, 200), help="The most members at a time.")
@money("The most dollars for its goal, in total; not less than it has spent.")
@option("--tokens", help="The most tokens for its goal, in total.")
@option("--turns", help="The most turns for its goal, in total.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="The most seconds of work on its goal, in total.",
)
@click.option(
    "--quiet",
    "quiet_hours",
    metavar="HOURS",
    help="Daily hours without briefings and browser notifications, such as 22:00-07:00; or none.",
)
@click.option("--zone", "quiet_zone", help="The time zone of the quiet hours: Europe/Berlin.")
@click.option("--channel", metavar="NAME", help="Your channel for the team's questions; or all.")
@click.option(
    "--answer-within",
    type=Interval(),
    help="How long its agents wait for your answer before they go on without: 4h, 2d; or never, "
    "to wait for ever.",
)
@printing
async def set(team: str, trust: Trust | None, workers: int | None, **given: Any) -> Told:
    """Change settings of a TEAM (its id or name). What you leave out stays as it is."""
    limits = {name: given.pop(name) for name in ("usd", "tokens", "turns", "seconds")}
    folders = given.pop("folder")
    given |= {
        "interval": given.pop("every"),
        "trust": trust,
        "limits": None if workers is None else {"agents": workers},
        "budget": {name: most for name, most in limits.items() if most is not None} or None,
    }
    if folders:
        given["folders"] = [absolute_folder(folder) for folder in folders if folder != "none"]
    settings: Any = {key: value for key, value in given.items() if value is not None}
    if not settings:
        raise click.UsageError("Say what to change, for example --mode infinite --every 1h.")
    for name, word in NONE_WORDS.items():
        if settings.get(name) == word:
            settings[name] = ""
    async with connected() as client:
        found = await client.team(team)
        confirm_open(trust, found.name)
        changed = await client.change_team(found.id, **settings)
    acts = f"every {_interval_text(changed.interval)}" if changed.interval else "only when asked"
    told = (
        f"Changed {clean(changed.name)!r}: {changed.mode}, {changed.status}, the coordinator acts "
        f"{acts}, review {changed.review}, trust {changed.trust}{_asking(changed)}."
    )
    return changed, "\n".join([told, *(_told_folders(changed) if folders else ())])


def _asking(team: TeamView) -> str:
    """Return when and how the team reaches the person, as far as it is not the default."""
    quiet = f", quiet {team.quiet_hours} {team.quiet_zone}" if team.quiet_hours else ""
    channel = f", questions to {clean(team.channel)}" if team.channel else ""
    within = team.answer_within
    return quiet + channel + (f", answers within {_interval_text(within)}" if within else "")


def _interval_text(seconds: float) -> str:
    """Return seconds in the largest unit that divides them, such as 90m."""
    unit = next((u for u in "dhm" if seconds % UNITS[u] == 0), "s")
    return f"{seconds / UNITS[unit]:g}{unit}"


@click.command()
@click.argument("team")
@click.argument("goal")
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    help="The most dollars for the work on this goal; without it, as many as for the last goal.",
)
@option("--accept")
@option("--accept-as")
@option("--review")
@printing
async def goal(team: str, goal: str, budget: float | None, **given: Any) -> Told:
    """Give a TEAM a new GOAL. Open work on the old one is cancelled; what it knows stays.

    Limits of the last goal hold for the new one too, from zero.
    """
    lines = lines_with_kinds(given["accept"], given["accept_as"])
    limit = None if budget is None else {"usd": budget}
    async with connected() as client:
        found = await client.team(team)
        if given["review"] not in (None, found.review):
            await client.change_team(found.id, review=given["review"])
        aimed = await client.set_goal(found.id, goal, budget=limit, acceptance=lines)
    told = f"{clean(aimed.name)!r} works on the new goal. Watch it: agiraph tail {aimed.id}"
    return aimed, told


# What was changed in the folders


@click.command()
@click.argument("team")
@click.argument("change", required=False)
@click.option("--node", help="Only what this node's agent changed.")
@click.option("--before", is_flag=True, help="Print what the file held before the CHANGE.")
@click.option("--after", is_flag=True, help="Print what the file held after the CHANGE.")
@printing
async def changes(
    team: str, change: str | None, node: str | None, before: bool, after: bool
) -> Told:
    """List what was changed in the folders that a TEAM was given, newest first.

    With the id of a CHANGE and --before or --after, print what the file held.
    """
    if (change is not None) != (before or after) or (before and after):
        raise click.UsageError("Give the id of a change with either --before or --after, or none.")
    async with connected() as client:
        found = await client.team(team)
        if change is not None:
            side = "before" if before else "after"
            sys.stdout.buffer.write(await client.read_copy(found.id, change, side))
            raise click.exceptions.Exit(0)
        listed = await client.folder_changes(found.id, node=node, limit=200)
    none = "Nothing was changed in the folders of this team."
    return listing(listed, _CHANGES, none, lambda one: "dim" if one.undone_at else "")


_CHANGES: Columns[FolderChangeView] = (
    ("when!", lambda one: f"{one.created_at:%m-%d %H:%M}"),
    ("what!", lambda one: one.kind if one.is_kept else f"{one.kind}, no copy"),
    ("by!", lambda one: one.node_id or "undone by a person"),
    ("id!", lambda one: one.id),
    (Column("path", overflow="fold"), lambda one: Text(clean(one.path))),
)


@click.command()
@click.argument("team")
@click.argument("paths", nargs=-1)
@click.option("--node", help="Undo only what this node's agent changed.")
@click.option("--force", is_flag=True, help="Put files back, too, that were changed since.")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@command
async def undo(team: str, paths: tuple[str, ...], node: str | None, force: bool, yes: bool) -> None:
    """Put files back as they were before the agents of a TEAM changed them.

    PATHS are as `agiraph changes` lists them; without any, everything is put back that the team, or
    the --node, has changed.
    """
    which = ", ".join(paths) or ("all changes of " + (node or f"the team {team!r}"))
    if not yes:
        click.confirm(f"Undo {which}?", abort=True)
    async with connected() as client:
        found = await client.team(team)
        undone = await client.undo(found.id, node=node, paths=paths, force=force)
    for path in undone.restored:
        click.echo(f"Put back: {clean(path)}")
    for path in undone.changed_since:
        click.echo(f"Left, because it was changed since: {clean(path)} (--force puts it back)")
    for path in undone.not_kept:
        click.echo(f"Left, because there is no copy: {clean(path)}")
    if not (undone.restored or undone.changed_since or undone.not_kept):
        click.echo("There is nothing to undo. `agiraph changes` lists what was changed.")
    if undone.changed_since or undone.not_kept:
        raise click.exceptions.Exit(1)
