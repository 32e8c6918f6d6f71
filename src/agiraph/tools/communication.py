"""Communication tools: talking to teammates and to the person."""

from typing import Annotated

from pydantic import Field

from agiraph.domain.errors import Refused
from agiraph.domain.ids import HUMAN
from agiraph.domain.outcomes import Answer, Done, Pending
from agiraph.services import mail
from agiraph.store import messages, teams
from agiraph.store.tx import Tx
from agiraph.tools.base import tool
from agiraph.tools.context import RunContext
from agiraph.tools.work import LONGEST


@tool(
    effect="transaction",
    guidance="""
    For what somebody should know before you are done: a finding, a warning, a question that need
    not stop you. They hear it at their next step; you do not wait. Say it once.
    """,
)
def send_message(
    tx: Tx,
    ctx: RunContext,
    to: Annotated[str, Field(description="A teammate's name, or 'human'")],
    content: Annotated[
        str, Field(min_length=1, max_length=LONGEST, description="Short; more belongs in a file")
    ],
) -> Answer:
    """Send a message to a teammate or to the human."""
    if to.strip().lower() == HUMAN:
        recipient = HUMAN
    else:
        recipient = teams.by_name(tx, ctx.team.id, to).id
        if recipient == ctx.agent.id:
            raise Refused("That is you. Use a note or a checkpoint to remember something.")
    mail.send(
        tx,
        team_id=ctx.team.id,
        sender=ctx.agent.id,
        recipient=recipient,
        text=content,
        node_id=ctx.node.id,
    )
    return Done(f"Sent to {to}.")


@tool(
    effect="transaction",
    polls=True,
    guidance="Messages reach you by themselves between your steps; you rarely need this.",
)
def check_messages(tx: Tx, ctx: RunContext) -> Answer:
    """Read messages that have come for you."""
    unseen = messages.unseen(tx, ctx.agent.id)
    if not unseen:
        return Done("No new messages.")
    messages.mark_seen(tx, [m.id for m in unseen])
    tx.emit(ctx.team.id, "message.seen", message_ids=[m.id for m in unseen])
    return Done("\n".join(mail.as_heard(tx, m) for m in unseen))


@tool(
    effect="transaction",
    guidance="""
    Ask when only the person can decide: a choice of taste, a missing permission, a doubt about
    what they want. Your work waits, at no cost, until they answer, which may take days: ask
    everything you need in one go, and offer options where you can.
    """,
)
def ask_human(
    tx: Tx,
    ctx: RunContext,
    question: Annotated[str, Field(min_length=1)],
    options: Annotated[
        list[str] | None, Field(description="Answers to choose from; they may give another")
    ] = None,
) -> Answer:
    """Ask the human a question and wait for the answer."""
    asked = mail.ask(tx, ctx.lease, text=question, options=options or ())
    return Pending(f"answer:{asked.id}", f"asked the human: {question}")
