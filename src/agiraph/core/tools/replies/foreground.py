"""Foreground tools: the tools of a reply to a person.

Those that act carry the person's message to the letter: the model chooses where it goes, and adds
words only where the tool says so.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.features import brought
from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.text import quotations
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import texts
from agiraph.core.services.board.kind_verbs import verbs_of
from agiraph.core.services.lifecycle import conversation, routing
from agiraph.core.services.members import roster
from agiraph.core.store import messages, nodes, teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.core.tools import scheduling, team
from agiraph.core.tools.base import Tool, tool
from agiraph.core.tools.delegation import hirer
from agiraph.core.tools.files import files
from agiraph.core.tools.replies import looking

NOW_ANSWER = "Now answer the human in a sentence."

WorkId = Annotated[str, Field(min_length=1, description="A task's id or a teammate's name")]


@tool(
    effect="transaction",
    decides_work="new_work",
)
def start_work(
    tx: Tx,
    ctx: RunContext,
    task: Annotated[str, Field(max_length=100_000)] = "",
    continues: Annotated[
        str | None,
        Field(description="An ended task, or who did it: it goes on there, knowing what it knew"),
    ] = None,
) -> Answer:
    """Put what the human wants into your work queue, in your own words: all they want of it, as
    the one who does the work sees this text and the last messages. Without a task their message
    is the task.
    """
    if continues is not None and continues.strip():
        return _continue(tx, ctx, continues, task)
    asked = messages.to_answer(tx, ctx.node.id)
    _refuse_second(tx, ctx, asked, task)
    node = conversation.start_work(tx, ctx.agent, ctx.node.id, task, label=ctx.label)
    did = Act(kind="started", about=node.id, name=texts.subject_of(node))
    return Done(f"Queued as {node.id}. {NOW_ANSWER}", did=did)


def _refuse_second(tx: Tx, ctx: RunContext, asked: Sequence[Message], task: str) -> None:
    """Raise `Refused` if this reply, or open work of the team, has the very same task."""
    wanted = task.strip() or "\n\n".join(message.text for message in asked)
    made = [NODES.get(tx, m.node_id) for m in asked if m.node_id is not None]
    for node in made:
        if not task.strip() or quotations.is_same(node.task, wanted):
            raise Refused(f"Queued already, as {node.id}. {NOW_ANSWER}")
    for node in nodes.still_open(tx, ctx.team.id):
        if quotations.is_same(node.task, wanted):
            raise Refused(
                f'{node.id} works on this already. Call tell("{node.id}") to add something to it, '
                "or answer from what it has so far."
            )


def _continue(tx: Tx, ctx: RunContext, identity: str, task: str) -> Answer:
    """Give the person's message to the agent of an ended task, in the thread of that task."""
    earlier = routing.find_work(tx, ctx.agent, identity)
    if not earlier.status.is_final:
        raise Refused(
            f'{earlier.id} is still {earlier.status}: tell("{earlier.id}") reaches its worker.'
        )
    asked = messages.to_answer(tx, ctx.node.id)
    taken_up = verbs_of(earlier).taken_up(tx, earlier, hirer(ctx), asked, ctx.web)
    if taken_up is not None:
        routing.mark_heard(tx, asked)
        did = Act(kind="started", about=taken_up.id, name=texts.subject_of(taken_up))
        told = f"{earlier.id} goes on as {taken_up.id}; the report goes to their inbox."
        return Done(told, did=did)
    if earlier.thread_id is None or earlier.assignee_id is None:
        raise Refused(f"Nobody ever began {earlier.id}; call start_work without continues.")
    roster.reinstate(tx, teams.lock(tx, earlier.assignee_id))
    node = conversation.start_work(
        tx, ctx.agent, ctx.node.id, task, label=ctx.label, earlier=earlier
    )
    worker = teams.AGENTS.get(tx, earlier.assignee_id).name
    did = Act(kind="started", about=node.id, name=f"{worker} goes on: {node.title}")
    return Done(f"{worker} goes on with {earlier.id} as {node.id}, in the same thread.", did=did)


Words = Annotated[
    str,
    Field(max_length=20_000, description="The part of their message that is meant; else all"),
]


@tool(effect="transaction", decides_work="about_work")
def tell(tx: Tx, ctx: RunContext, node_id: WorkId, words: Words = "") -> Answer:
    """Give their message, word for word, to work that is under way. It is read at the next step."""
    return routing.tell(tx, ctx.agent, ctx.node.id, node_id, words)


@tool(effect="transaction", decides_work="answer")
def answer(tx: Tx, ctx: RunContext, question_id: str = "", words: Words = "") -> Answer:
    """Answer an open question with their message, word for word. Without an id: the newest that
    you asked them.
    """
    acts = [turn.did for turn in ctx.transcript.turns if turn.did is not None]
    return routing.answer(tx, ctx.agent, ctx.node.id, question_id, words, acts=acts)


@tool(effect="transaction", decides_work="stop")
def stop_work(tx: Tx, ctx: RunContext, node_id: WorkId) -> Answer:
    """Stop work that they want to end, with all below it. Only this stops it."""
    return routing.stop(tx, ctx.agent, ctx.node.id, node_id)


@tool(effect="transaction", decides_work="chat")
def no_work_needed(
    tx: Tx,
    ctx: RunContext,
    reason: Annotated[str, Field(max_length=2000)] = "",
) -> Answer:
    """Say that nothing is to be done: thanks, small talk, or a question that your reply settles."""
    return Done("Then nothing is queued.")


LOOKING: tuple[Tool, ...] = (looking.look_into, looking.read_report, looking.search)
"""The tools that read the work of the team."""

BROUGHT: tuple[Tool, ...] = tuple(tool for tools in brought("reply_tools") for tool in tools)
"""The tools that features bring to replies."""
FOREGROUND: Mapping[str, Tool] = {
    made.name: made
    for made in (
        *LOOKING,
        files.read_file,
        team.check_board,
        team.job_status,
        tell,
        answer,
        stop_work,
        start_work,
        *(tool for tool in BROUGHT if tool.properties.decides_work),
        no_work_needed,
        *(tool for tool in BROUGHT if not tool.properties.decides_work),
        scheduling.promise,
    )
}
UNSHOWN = frozenset({"job_status"})
"""Tools of a reply that do what others do: their calls are made, but no request contains them."""
BASIC: Mapping[str, Tool] = {
    made.name: made
    for made in (
        *(looking.look_into, tell, answer, stop_work, start_work, no_work_needed),
        *(tool for tool in BROUGHT if "reply" in tool.properties.basic_for),
    )
}
"""The tools of a reply whose model has a small window."""
