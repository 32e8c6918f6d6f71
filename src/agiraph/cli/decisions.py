"""`agiraph grants`, `grant`, `revoke`, `confirm`: what you allow for good, and what you confirm."""

import sys
from datetime import datetime
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from agiraph.api.decision_views import DigestEntry, DigestView, GrantView
from agiraph.cli.questions import literal
from agiraph.cli.session import as_json, command, source
from agiraph.cli.teams import json_option
from agiraph.client import Client
from agiraph.domain.digest import COVERED
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.plurals import counted

if TYPE_CHECKING:
    from agiraph.cli.local import Local
    from agiraph.domain.grants import GrantKind

KINDS = ("read", "reach", "packages", "tool", "command", "trust")
TITLES = {
    "ask": "Requests: answer each by itself",
    "pending": "Pending: nobody uses it until you confirm it",
    "unverified": "Unverified: it comes from untrusted text",
    "file": "Files with untrusted text: read each, then confirm it by its id",
    "trigger": "Triggers that an agent made after it had read untrusted text",
    "use": "Grants that were used lately",
}
ON_DEMAND = "agiraph inbox --digest --words shows each, with its id and its exact words"


@click.command()
@click.argument("team")
@json_option
@command
async def grants(team: str, json_: bool) -> None:
    """List what a TEAM may do without asking you: who allowed it, when, and its uses."""
    async with source() as found:
        listed = await found.grants((await found.team(team)).id)
    if json_:
        return click.echo(as_json(listed))
    if not listed:
        return click.echo(f"The team {team!r} has no grants.")
    Console(emoji=False).print(_table(listed))


def _table(listed: list[GrantView]) -> Table:
    # What is allowed is folded, never cut: a person decides by its end, too.
    fixed = [Column(name, no_wrap=True) for name in ("id", "kind", "until", "used")]
    table = Table(*fixed, Column("allows", overflow="fold"), box=None)
    for one in listed:
        until = "revoked" if one.revoked_at else "used up" if one.uses_left == 0 else ""
        until = until or (f"{one.until:%Y-%m-%d}" if one.until else "")
        where = "" if one.team_id else " in all teams"
        how = "an address typed by" if one.is_typed else "by"
        by = f"{how} {one.person_id} on {one.created_at:%Y-%m-%d}{where}"
        allows = literal(f"{one.pattern}\n({by})")
        style = "" if one.is_in_force else "dim"
        table.add_row(one.id, one.kind, until, str(one.used), allows, style=style)
    return table


@click.command()
@click.argument("team")
@click.argument("kind", type=click.Choice(KINDS), metavar="KIND")
@click.argument("pattern")
@click.option("--until", type=click.DateTime(), help="When it ends (UTC); by default never.")
@click.option("--home", is_flag=True, help="Allow it in all teams.")
@command
async def grant(
    team: str, kind: "GrantKind", pattern: str, until: datetime | None, home: bool
) -> None:
    """Allow something in a TEAM from now on: KIND is read or reach (a host), packages, tool,
    command (the exact words) or trust (a program, a host, or folder:NAME); PATTERN names it.
    """
    from datetime import UTC

    end = None if until is None else until.replace(tzinfo=UTC)
    async with source(to_write=True) as found:
        team_id = (await found.team(team)).id
        made = await found.grant(team_id, kind, pattern, until=end, home=home)
    over = "" if made.until is None else f" until {made.until:%Y-%m-%d}"
    click.echo(f"Allowed{over}. Take it back with: agiraph revoke {made.id}")


@click.command()
@click.argument("grant")
@command
async def revoke(grant: str) -> None:
    """Take back a GRANT by its id: the next such call asks you again."""
    async with source(to_write=True) as found:
        for team in await found.teams():
            if any(one.id == grant for one in await found.grants(team.id)):
                await found.revoke_grant(team.id, grant)
                return click.echo("Revoked. The next such call asks you again.")
    raise NotFound("grant", grant, known="`agiraph grants TEAM` lists them.")


@click.command()
@click.argument("team")
@click.argument("ids", nargs=-1)
@click.option("--all", "all_", is_flag=True, help="Confirm all knowledge, notes and triggers.")
@click.option("--reject", multiple=True, metavar="ID", help="Remove knowledge, or deny a request.")
@click.option("--stop", multiple=True, metavar="ID", help="Cancel a trigger.")
@click.option("--yes", is_flag=True, help="With --all: confirm what is printed without asking.")
@command
async def confirm(
    team: str,
    ids: tuple[str, ...],
    all_: bool,
    reject: tuple[str, ...],
    stop: tuple[str, ...],
    yes: bool,
) -> None:
    """Confirm what a TEAM keeps from untrusted text, by IDS or with --all.

    `agiraph inbox --digest` lists it; --all prints the exact words and then asks. A request for a
    call is never confirmed here: read the call, and answer it with `agiraph answer`.
    """
    if not (ids or all_ or reject or stop):
        raise click.UsageError("Name what to confirm, or give --all.")
    if ids and all_:
        raise click.UsageError("Give ids or --all, not both.")
    async with source(to_write=True) as found:
        team_id = (await found.team(team)).id
        if all_:
            ids = await _read_all(found, team_id, without={*reject, *stop}, yes=yes)
        decided = await found.decide(team=team_id, confirm=ids, reject=reject, stop=stop)
    click.echo(f"Decided on {counted(len(decided.ids), 'entry', 'entries')}.")


async def _read_all(
    found: "Client | Local", team_id: str, *, without: set[str], yes: bool
) -> tuple[str, ...]:
    """Print the exact words of all knowledge, notes and triggers of a team, have the person agree
    to them, and return their ids: what comes meanwhile is not among them."""
    [digest] = await found.digest(team_id, words=True) or [None]
    entries = () if digest is None else digest.entries
    shown = [entry for entry in entries if entry.kind in COVERED and entry.id not in without]
    console = Console(emoji=False)
    for entry in shown:
        _show_entry(console, entry)
    if shown and not yes:
        if not sys.stdin.isatty():
            raise Refused("Nobody can be asked here: read the words above, then give --yes.")
        click.confirm(f"Confirm these {len(shown)}?", abort=True)
    return tuple(entry.id for entry in shown)


async def show_digest(found: "Client | Local", *, words: bool, json_: bool) -> None:
    """Print what the person may decide on, team by team."""
    digests = await found.digest(words=words)
    if json_:
        return click.echo(as_json(digests))
    if not digests:
        return click.echo("There is nothing to decide on.")
    console = Console(emoji=False)
    for each in digests:
        _show_team(console, each, words=words)
    return None


def _show_team(console: Console, digest: DigestView, *, words: bool) -> None:
    console.print(Text(f"{digest.team_name} ", style="bold") + literal(digest.team_id))
    for group in digest.groups:
        source_ = f", from {group.source}" if group.source else ""
        console.print(literal(f"  {TITLES[group.kind]}{source_} ({len(group.ids)})"))
        if group.kind in COVERED and len(group.ids) > 1 and not words:
            console.print(literal(f"    {ON_DEMAND}"))
            continue
        for entry in digest.entries:
            if entry.id in group.ids:
                _show_entry(console, entry)
    console.print(
        literal(f"  Confirm knowledge and triggers: agiraph confirm {digest.team_id} --all")
    )


def _show_entry(console: Console, entry: DigestEntry) -> None:
    waits = " (work waits for it)" if entry.is_waited_for else ""
    console.print(literal(f"    {entry.id}  {entry.title}{waits}"), soft_wrap=True)
    for line in entry.text.splitlines() or [""]:
        # The mark: a line of somebody's words could imitate a line of ours.
        console.print(literal(f"      | {line}"), soft_wrap=True, highlight=False)
    if entry.kind == "ask":
        always = ""
        if entry.always is not None:
            files = ", whatever its files hold then" if entry.always.kind == "command" else ""
            always = f"  (--always allows {entry.always.kind} {entry.always.pattern}{files})"
        console.print(literal(f"      agiraph answer {entry.id} approve|deny{always}"))


def checked_always(always: bool, decision: str | None) -> bool:
    """Return `always`; raise `Refused` if it is given without an approval."""
    if always and decision != "approve":
        raise Refused("--always belongs to an approval: answer `approve`.")
    return always
