"""`agiraph inbox` and `agiraph answer`: the questions, approvals and reports for you."""

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from agiraph.api.views import InboxItem
from agiraph.cli import tables
from agiraph.cli.decisions import checked_always, show_digest
from agiraph.cli.questions import call_text, decide
from agiraph.cli.session import as_json, command, is_missing, source
from agiraph.cli.teams import json_option
from agiraph.client import Client
from agiraph.domain.errors import NotFound, Refused

if TYPE_CHECKING:
    from agiraph.cli.local import Local

PAGE = 500


async def everything(found: "Client | Local") -> list[InboxItem]:
    """Return the whole inbox; items that need an answer come first."""
    page = await found.inbox(limit=PAGE)
    items = page.items
    while page.cursor:
        page = await found.inbox(after=page.cursor, limit=PAGE)
        items += page.items
    return items


@click.command()
@click.option(
    "--open", "only_open", is_flag=True, help="List only items that still need your answer."
)
@click.option(
    "--digest", is_flag=True, help="List what you may decide on: requests, knowledge, triggers."
)
@click.option("--words", is_flag=True, help="With --digest: show the exact words.")
@json_option
@command
async def inbox(only_open: bool, digest: bool, words: bool, json_: bool) -> None:
    """List questions, approvals, results and failures that agents sent you."""
    async with source() as found:
        if digest:
            return await show_digest(found, words=words, json_=json_)
        items = await everything(found)
    if only_open:
        items = [item for item in items if item.needs_answer]
    if json_:
        plain = [
            {**i.message.model_dump(), "state": i.state, "needs_answer": i.needs_answer}
            for i in items
        ]
        return click.echo(as_json(plain))
    if not items:
        return click.echo("No open questions." if only_open else "The inbox is empty.")
    show(Console(emoji=False), items)


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
            asked = (await found.item(question)).message
        except Refused as error:
            if not is_missing(error):
                raise
            known = "`agiraph inbox --open` lists the open ones."
            raise NotFound("question", question, known=known) from error
        words, decision = decide(asked, text)
        always = checked_always(always, decision)
        await found.answer(question, words, decision=decision, always=always)
        is_running = isinstance(found, Client)
    if is_running:
        click.echo(f"Answered. Watch the team with: agiraph tail {asked.team_id}")
    else:
        click.echo(f"Answered. Continue with: agiraph run --resume {asked.team_id}")
