"""`agiraph inbox` and `agiraph answer`: what agents want of you, and what you say to it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import click
from rich.console import Console

from agiraph.api.views import InboxItem
from agiraph.cli import tables
from agiraph.cli.session import as_json, command, is_missing, source
from agiraph.cli.teams import json_option
from agiraph.client import Client
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.messages import Decision

if TYPE_CHECKING:
    from agiraph.cli.local import Local

DECISIONS: dict[str, Decision] = {
    "approve": "approve", "yes": "approve", "y": "approve",
    "deny": "deny", "no": "deny", "n": "deny",
}  # fmt: skip
PAGE = 500


class Question(Protocol):
    """What somebody wants to know of the person, wherever it was read."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def options(self) -> Sequence[str]: ...


def decide(question: Question, text: str) -> tuple[str, Decision | None]:
    """What a typed line means for this question: words, or a decision with a note."""
    if question.kind != "approval":
        if not text.strip():
            raise Refused("An empty answer says nothing; write what you want them to know.")
        return text, None
    word, _, note = text.strip().partition(" ")
    decision = DECISIONS.get(word.lower())
    if decision is None:
        raise Refused(f"{question.id} asks for approval: answer `approve` or `deny`, then a note.")
    return note.strip(), decision


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
    Console().print(tables.of_inbox(items))


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
