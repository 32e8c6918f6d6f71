"""`agiraph inbox`, `answer`, `confirm`, `grants`, …: what waits for you, and what you allow."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Column
from rich.text import Text

from agiraph.cli.asking import call_text, deadline, decide, literal
from agiraph.cli.session import (
    Columns,
    Local,
    Told,
    clean,
    command,
    connected,
    listing,
    naming,
    printing,
    shown,
    source,
    table,
)
from agiraph.client import Client
from agiraph.core.domain.agents import name_from_goal
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.messages import Rating
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.records.digest import COVERED
from agiraph.core.domain.records.doubts import as_text, sentences
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.text.visible import visible
from agiraph.core.domain.work import NodeStatus

if TYPE_CHECKING:
    from agiraph.api.decision_views import DigestEntry, DigestGroup, DigestView, GrantView
    from agiraph.api.views import InboxItem
    from agiraph.core.domain.provenance.grants import GrantKind

PAGE = 500
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
LISTING = "`agiraph inbox` lists them."

# The inbox

TOO_LATE = (
    "The work that asked has ended, so nothing was started with your answer. You are asked what to "
    "do with it: agiraph inbox --open"
)


async def everything(found: Client) -> list[InboxItem]:
    """Return the whole inbox; items that need an answer come first."""
    page = await found.inbox(limit=PAGE)
    items = page.items
    while page.cursor:
        page = await found.inbox(after=page.cursor, limit=PAGE)
        items += page.items
    return items


@click.command()
@click.argument("item", required=False)
@click.option(
    "--open", "only_open", is_flag=True, help="List only items that still need your answer."
)
@click.option(
    "--digest",
    is_flag=True,
    help="List what you may decide on, requests, knowledge and triggers, and teams that ended.",
)
@click.option("--words", is_flag=True, help="With --digest: show the exact words.")
@printing
async def inbox(item: str | None, only_open: bool, digest: bool, words: bool) -> Told:
    """List questions, approvals, results and failures for you; or read one ITEM by its id."""
    if item is not None and (only_open or digest):
        raise click.UsageError("Name one item, or list them with --open or --digest.")
    async with source(to_write=item is not None) as found:
        if item is not None:
            return await _read(found, item)
        if digest:
            digests = await found.digest(words=words)
            return digests, lambda: _show_digests(digests, words=words)
        items = [one for one in await everything(found) if one.needs_answer or not only_open]
    none = "No open questions." if only_open else "The inbox is empty."
    return [_plain(one) for one in items], (
        lambda: show(Console(emoji=False), items)
    ) if items else none


def _plain(item: InboxItem) -> dict[str, Any]:
    return {**item.message.model_dump(), "state": item.state, "needs_answer": item.needs_answer}


async def _read(found: Client, name: str) -> Told:
    """Return an item of the inbox, and mark it as read."""
    with naming("inbox item", name, LISTING):
        item = await found.item(name)
        if not item.needs_answer:
            item = await found.mark_read(name)
    return _plain(item), lambda: _show_item(item)


def _show_item(item: InboxItem) -> None:
    """Print one item as a whole, and what can be done about it."""
    message, console = item.message, Console(emoji=False, highlight=False)
    kind, written = ending_text(item), f"{message.created_at:%Y-%m-%d %H:%M} UTC"
    console.print(Text(f"{clean(message.sender_name)} · {kind} · {written}", style="dim"))
    if message.title:
        console.print(Text(clean(message.title), style="bold"))
    text = visible(message.text) if item.needs_answer else clean(message.text)
    lines = [Text(text)]
    if message.doubts:
        lines.append(Text(f"\n{clean(as_text(sentences(message.doubts)))}"))
    lines += [Text(f"{n}. {visible(option)}") for n, option in enumerate(message.options, 1)]
    if message.call is not None:
        lines += call_text(message.call, console.width, indent="")
    if len(item.waiting_teams) > 1:
        teams = counted(len(item.waiting_teams), "team")
        lines.append(Text(f"{teams} wait for this; one answer lets all of them try again."))
    if waits := deadline(message.waits_until):
        lines.append(Text(waits, style="yellow"))
    if hint := _next_step(item):
        lines.append(Text(f"\n{hint}", style="dim"))
    for line in lines:
        console.print(line, soft_wrap=True)


def _next_step(item: InboxItem) -> str:
    """Return the command that a person may want after reading an item; empty: none."""
    message = item.message
    if item.needs_answer:
        answer = "approve|deny" if message.kind == "approval" else '"TEXT"'
        return f"Answer it: agiraph answer {message.id} {answer}"
    if message.kind == "briefing":
        chat = f"All of it: agiraph chat {message.sender}"
        return f"{chat}\nWorth your time? agiraph rate {message.id} up|down"
    return ""


def show(console: Console, items: list[InboxItem]) -> None:
    """Print the inbox; below it, each call that waits for approval, complete."""
    style = {"unread": "bold"}
    console.print(table(items, _INBOX, lambda item: style.get(item.state, "")))
    for message in (item.message for item in items if item.needs_answer):
        if message.call is not None:
            console.print(Text(f"\n{message.id} wants to call ", style="bold"), end="")
            for line in call_text(message.call, console.width, indent=""):
                console.print(line, soft_wrap=True, highlight=False)


def _text(item: InboxItem) -> str:
    message = item.message
    said = message.title if message.kind == "briefing" else message.text
    # A person approves what this text says, so that all of it is shown.
    text = escape(visible(said)) if item.needs_answer else shown(said)
    if message.title and message.kind in ("result", "failure", "report"):
        text = f"[dim]{shown(message.title)}[/]\n{text}"
    if lost := [d.channel for d in item.deliveries if d.status == "failed"]:
        text += f" [red](not delivered: {shown(', '.join(lost))})[/]"
    if len(item.waiting_teams) > 1:
        text += f" [dim]({len(item.waiting_teams)} teams wait; one answer lets all try again)[/]"
    if waits := deadline(message.waits_until):
        text += f" [dim]({waits})[/]"
    if message.sources:
        text += f" [yellow](holds words of {shown(str(Label(tuple(message.sources))))})[/]"
    return text


def ending_text(item: InboxItem) -> str:
    """Return the kind of an inbox item in words; of an end, also what became of the task."""
    match item.message.kind, item.node_status:
        case "failure", NodeStatus.PARTIAL:
            return "partial result"
        case "failure", NodeStatus.COMPLETED:
            return "done since"
        case "failure", NodeStatus() as status if not status.is_final:
            return "goes on"
        case "result", _ if item.message.doubts:
            return "done, with doubts"
        case kind, _:
            return kind


_INBOX: Columns[InboxItem] = (
    ("id!", lambda item: item.message.id),
    ("kind", ending_text),
    ("state", lambda item: "open" if item.needs_answer else item.state),
    ("text", _text),
)


@click.command()
@click.argument("item")
@click.argument("thumb", type=click.Choice(["up", "down"]))
@command
async def rate(item: str, thumb: Rating) -> None:
    """Rate a briefing by its id: `up` for more like it, `down` for fewer."""
    async with connected() as client:
        with naming("briefing", item, LISTING):
            await client.rate(item, thumb)
    click.echo(f"Rated. You will get {'more' if thumb == 'up' else 'fewer'} like it.")


@click.command()
@click.argument("question")
@click.argument("text")
@click.option("--always", is_flag=True, help="With approve: allow all such calls from now on.")
@command
async def answer(question: str, text: str, always: bool) -> None:
    """Answer a QUESTION by its id with TEXT. For an approval: approve or deny, then a note.

    If a server runs, the agent continues at once.
    """
    async with source(to_write=True) as found:
        with naming("question", question, "`agiraph inbox --open` lists the open ones."):
            item = await found.item(question)
        asked = item.message
        words, decision = decide(asked, text)
        if always and decision != "approve":
            raise Refused("--always belongs to an approval: answer `approve`.")
        await found.answer(question, words, decision=decision, always=always)
    if item.state == "closed":
        click.echo(TOO_LATE)
    elif isinstance(found, Local):
        click.echo(f"Answered. Continue with: agiraph run --resume {asked.team_id}")
    else:
        click.echo(f"Answered. Watch the team with: agiraph tail {asked.team_id}")


# What is allowed for good


@click.command()
@click.argument("team")
@printing
async def grants(team: str) -> Told:
    """List what a TEAM may do without asking you: who allowed it, when, and its uses."""
    async with source() as found:
        listed = await found.grants((await found.team(team)).id)
    none = f"The team {team!r} has no grants."
    return listing(listed, _GRANTS, none, lambda one: "" if one.is_in_force else "dim")


def _end(one: GrantView) -> str:
    if one.revoked_at or one.uses_left == 0:
        return "revoked" if one.revoked_at else "used up"
    return f"{one.until:%Y-%m-%d}" if one.until else ""


def _allows(one: GrantView) -> Text:
    where = "" if one.team_id else " in all teams"
    how = "an address typed by" if one.is_typed else "by"
    by = f"{how} {one.person_id} on {one.created_at:%Y-%m-%d}{where}"
    return literal(f"{one.pattern}\n({by})")


_GRANTS: Columns[GrantView] = (
    ("id!", lambda one: one.id),
    ("kind!", lambda one: one.kind),
    ("until!", _end),
    ("used!", lambda one: str(one.used)),
    # Folded, never cut: a person decides by its end, too.
    (Column("allows", overflow="fold"), _allows),
)


@click.command()
@click.argument("team")
@click.argument("kind", type=click.Choice(KINDS), metavar="KIND")
@click.argument("pattern")
@click.option("--until", type=click.DateTime(), help="When it ends (UTC); by default never.")
@click.option("--home", is_flag=True, help="Allow it in all teams.")
@command
async def grant(
    team: str, kind: GrantKind, pattern: str, until: datetime | None, home: bool
) -> None:
    """Allow something in a TEAM from now on: KIND is read or reach (a host), packages, tool,
    command (the exact words) or trust (a program, a host, or folder:NAME); PATTERN names it.
    """
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


# What a person confirms


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
    found: Client, team_id: str, *, without: set[str], yes: bool
) -> tuple[str, ...]:
    """Print the exact words of all knowledge, notes and triggers of a team, have the person agree
    to them, and return their ids: what comes meanwhile is not among them."""
    entries = [one for digest in await found.digest(team_id, words=True) for one in digest.entries]
    asked = [entry for entry in entries if entry.kind in COVERED and entry.id not in without]
    console = Console(emoji=False)
    for entry in asked:
        _show_entry(console, entry)
    if asked and not yes:
        if not sys.stdin.isatty():
            raise Refused("Nobody can be asked here: read the words above, then give --yes.")
        click.confirm(f"Confirm these {len(asked)}?", abort=True)
    return tuple(entry.id for entry in asked)


def _show_digests(digests: list[DigestView], *, words: bool) -> None:
    """Print what the person may decide on and which teams have ended, team by team."""
    console = Console(emoji=False)
    for digest in digests:
        console.print(Text(f"{digest.team_name} ", style="bold") + literal(digest.team_id))
        if digest.ended is not None:
            goal = name_from_goal(digest.ended.goal)
            end = f"  Ended ({digest.ended.status.value}): {goal}"
            console.print(literal(end), soft_wrap=True)
            console.print(literal(f"    agiraph inbox {digest.ended.message_id} shows the result"))
        for group in digest.groups:
            _show_group(console, digest, group, words=words)
        if digest.groups:
            confirm = f"  Confirm knowledge and triggers: agiraph confirm {digest.team_id} --all"
            console.print(literal(confirm))
    if not any(digest.groups for digest in digests):
        click.echo("There is nothing to decide on.")


def _show_group(console: Console, digest: DigestView, group: DigestGroup, *, words: bool) -> None:
    origin = f", from {group.source}" if group.source else ""
    console.print(literal(f"  {TITLES[group.kind]}{origin} ({len(group.ids)})"))
    if group.kind in COVERED and len(group.ids) > 1 and not words:
        return console.print(literal(f"    {ON_DEMAND}"))
    for entry in digest.entries:
        if entry.id in group.ids:
            _show_entry(console, entry)


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
