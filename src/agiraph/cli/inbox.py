"""`agiraph inbox`, `answer` and `rate`: the questions, approvals, reports and briefings for you."""

from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from agiraph.api.views import InboxItem
from agiraph.cli import tables
from agiraph.cli.decisions import checked_always, show_digest
from agiraph.cli.questions import call_text, deadline, decide
from agiraph.cli.session import as_json, clean, command, connected, is_missing, source
from agiraph.cli.teams import json_option
from agiraph.client import Client
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.messages import Rating
from agiraph.domain.visible import visible

if TYPE_CHECKING:
    from agiraph.cli.local import Local

PAGE = 500
TOO_LATE = (
    "The work that asked has ended, so nothing was started with your answer. You are asked what to "
    "do with it: agiraph inbox --open"
)


async def everything(found: "Client | Local") -> list[InboxItem]:
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
    "--digest", is_flag=True, help="List what you may decide on: requests, knowledge, triggers."
)
@click.option("--words", is_flag=True, help="With --digest: show the exact words.")
@json_option
@command
async def inbox(item: str | None, only_open: bool, digest: bool, words: bool, json_: bool) -> None:
    """List questions, approvals, results and failures for you; or read one ITEM by its id."""
    if item is not None and (only_open or digest):
        raise click.UsageError("Name one item, or list them with --open or --digest.")
    async with source(to_write=item is not None) as found:
        if item is not None:
            return _show_item(await _read(found, item), json_=json_)
        if digest:
            return await show_digest(found, words=words, json_=json_)
        items = await everything(found)
    if only_open:
        items = [item for item in items if item.needs_answer]
    if json_:
        return click.echo(as_json([_plain(item) for item in items]))
    if not items:
        return click.echo("No open questions." if only_open else "The inbox is empty.")
    show(Console(emoji=False), items)


def _plain(item: InboxItem) -> dict[str, Any]:
    return {**item.message.model_dump(), "state": item.state, "needs_answer": item.needs_answer}


async def _read(found: "Client | Local", item: str) -> InboxItem:
    """Return an item of the inbox, and mark it as read."""
    try:
        read = await found.item(item)
        return read if read.needs_answer else await found.mark_read(item)
    except Refused as error:
        if not is_missing(error):
            raise
        raise NotFound("inbox item", item, known="`agiraph inbox` lists them.") from error


def _show_item(item: InboxItem, *, json_: bool) -> None:
    """Print one item as a whole, and what can be done about it."""
    if json_:
        return click.echo(as_json(_plain(item)))
    message, console = item.message, Console(emoji=False, highlight=False)
    kind, written = tables.ending_text(item), f"{message.created_at:%Y-%m-%d %H:%M} UTC"
    console.print(Text(f"{clean(message.sender_name)} · {kind} · {written}", style="dim"))
    if message.title:
        console.print(Text(clean(message.title), style="bold"))
    text = visible(message.text) if item.needs_answer else clean(message.text)
    console.print(Text(text), soft_wrap=True)
    for number, option in enumerate(message.options, 1):
        console.print(Text(f"{number}. {visible(option)}"), soft_wrap=True)
    if message.call is not None:
        for line in call_text(message.call, console.width, indent=""):
            console.print(line, soft_wrap=True, highlight=False)
    if waits := deadline(message.waits_until):
        console.print(Text(waits, style="yellow"), soft_wrap=True)
    if hint := _next_step(item):
        console.print(Text(f"\n{hint}", style="dim"), soft_wrap=True)


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


@click.command()
@click.argument("item")
@click.argument("thumb", type=click.Choice(["up", "down"]))
@command
async def rate(item: str, thumb: Rating) -> None:
    """Rate a briefing by its id: `up` for more like it, `down` for fewer."""
    async with connected() as client:
        try:
            await client.rate(item, thumb)
        except Refused as error:
            if not is_missing(error):
                raise
            raise NotFound("briefing", item, known="`agiraph inbox` lists them.") from error
    click.echo(f"Rated. You will get {'more' if thumb == 'up' else 'fewer'} like it.")


def show(console: Console, items: list[InboxItem]) -> None:
    """Print the inbox; below it, each call that waits for approval, complete."""
    console.print(tables.of_inbox(items))
    for message in (item.message for item in items if item.needs_answer):
        if message.call is not None:
            console.print(Text(f"\n{message.id} wants to call ", style="bold"), end="")
            for line in call_text(message.call, console.width, indent=""):
                console.print(line, soft_wrap=True, highlight=False)


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
        try:
            item = await found.item(question)
        except Refused as error:
            if not is_missing(error):
                raise
            known = "`agiraph inbox --open` lists the open ones."
            raise NotFound("question", question, known=known) from error
        words, decision = decide(item.message, text)
        always = checked_always(always, decision)
        await found.answer(question, words, decision=decision, always=always)
        is_running = isinstance(found, Client)
    asked = item.message
    if item.state == "closed":
        click.echo(TOO_LATE)
    elif is_running:
        click.echo(f"Answered. Watch the team with: agiraph tail {asked.team_id}")
    else:
        click.echo(f"Answered. Continue with: agiraph run --resume {asked.team_id}")
