"""`agiraph inbox` and `agiraph answer`: what agents want of you, and what you say to it."""

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from agiraph.api.views import InboxItem
from agiraph.cli import tables
from agiraph.cli.questions import called, decide
from agiraph.cli.session import as_json, command, is_missing, source
from agiraph.cli.teams import json_option
from agiraph.client import Client
from agiraph.domain.errors import NotFound, Refused

if TYPE_CHECKING:
    from agiraph.cli.local import Local

PAGE = 500


async def everything(found: "Client | Local") -> list[InboxItem]:
    """The whole inbox; what needs an answer first."""
    page = await found.inbox(limit=PAGE)
    items = page.items
    while page.cursor:
        page = await found.inbox(after=page.cursor, limit=PAGE)
        items += page.items
    return items


@click.command()
@click.option("--open", "only_open", is_flag=True, help="Only what still needs an answer.")
@json_option
@command
async def inbox(only_open: bool, json_: bool) -> None:
    """List questions, approvals, results and failures."""
    async with source() as found:
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
        return click.echo("Nothing here.")
    show(Console(emoji=False), items)


def show(console: Console, items: list[InboxItem]) -> None:
    """Print the inbox; below it, whole, each call that waits for approval."""
    console.print(tables.of_inbox(items))
    for message in (item.message for item in items if item.needs_answer):
        if message.call is not None:
            console.print(Text(f"\n{message.id} wants to call ", style="bold"), end="")
            for line in called(message.call, console.width, indent=""):
                console.print(line, soft_wrap=True, highlight=False)


@click.command()
@click.argument("question")
@click.argument("text")
@command
async def answer(question: str, text: str) -> None:
    """Answer a QUESTION by its id; its agent goes on, at once if a server runs."""
    async with source(to_write=True) as found:
        try:
            asked = (await found.item(question)).message
        except Refused as error:
            if not is_missing(error):
                raise
            known = "`agiraph inbox --open` lists them."
            raise NotFound("question", question, known=known) from error
        words, decision = decide(asked, text)
        await found.answer(question, words, decision=decision)
        is_running = isinstance(found, Client)
    if is_running:
        click.echo(f"Answered. Watch it go on with: agiraph tail {asked.team_id}")
    else:
        click.echo(f"Answered. Go on with: agiraph run --resume {asked.team_id}")
