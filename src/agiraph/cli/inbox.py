"""`agiraph inbox` and `agiraph answer`: what agents want of you, and what you say to it."""

import click
from rich.console import Console
from rich.table import Column, Table

from agiraph.cli.session import as_json, command, opened, shown
from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.messages import Decision, Message
from agiraph.services import inbox as box
from agiraph.services import journal
from agiraph.store.messages import MESSAGES
from agiraph.store.tx import Tx

DECISIONS: dict[str, Decision] = {
    "approve": "approve", "yes": "approve", "y": "approve",
    "deny": "deny", "no": "deny", "n": "deny",
}  # fmt: skip


def decide(question: Message, text: str) -> tuple[str, Decision | None]:
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


@click.command()
@click.option("--open", "only_open", is_flag=True, help="Only what still needs an answer.")
@click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
@command
async def inbox(only_open: bool, json_: bool) -> None:
    """List questions, approvals, results and failures."""
    async with opened() as (_, store):
        found = (await store.read(box.items, limit=box.MOST)).items
    if only_open:
        found = [item for item in found if item.needs_answer]
    if json_:
        return click.echo(as_json([item.message for item in found]))
    if not found:
        return click.echo("Nothing here.")
    table = Table(Column("id", no_wrap=True), "kind", "state", "text", box=None)
    for item in found:
        message = item.message
        state = "open" if item.needs_answer else item.state
        said = message.title if message.kind == "briefing" else message.text
        lost = [d.channel for d in item.deliveries if d.status == "failed"]
        note = f" [red](not delivered: {shown(', '.join(lost))})[/]" if lost else ""
        style = "bold" if item.state == "unread" else None
        table.add_row(message.id, message.kind, state, shown(said) + note, style=style)
    Console().print(table)


@click.command()
@click.argument("question")
@click.argument("text")
@command
async def answer(question: str, text: str) -> None:
    """Answer a QUESTION by its id; its agent goes on when the team runs again."""

    def write(tx: Tx) -> Message:
        asked = MESSAGES.find(tx, question)
        if asked is None:
            raise NotFound("question", question, known="`agiraph inbox --open` lists them.")
        words, decision = decide(asked, text)
        journal.answer_question(tx, asked.id, words, decision=decision)
        return asked

    async with opened(to_write=True) as (_, store):
        asked = await store.write(write)
    click.echo(f"Answered. Go on with: agiraph run --resume {asked.team_id}")
