"""Research tools: start research in the background, and show the state of background work."""

from typing import Annotated

from pydantic import Field

from agiraph.domain.acts import Act
from agiraph.domain.errors import Refused
from agiraph.domain.labels import CLEAN, Label, join
from agiraph.domain.outcomes import Answer, Done
from agiraph.domain.research import Depth
from agiraph.domain.tools import ON_DEMAND
from agiraph.run_context import RunContext
from agiraph.services.board import jobs, labels, texts
from agiraph.services.board.jobs import Job
from agiraph.services.lifecycle import conversation
from agiraph.services.research import starting
from agiraph.store import messages, nodes
from agiraph.store.tx import Tx
from agiraph.tools.base import tool
from agiraph.tools.delegation import hirer
from agiraph.tools.web import web_fetch, web_search
from agiraph.web import links
from agiraph.web.access import Web
from agiraph.web.search import NO_ENGINE


@tool(
    effect="transaction",
    delegates=True,
    decides_work="new_work",
    in_sight=ON_DEMAND,
)
def research_start(
    tx: Tx,
    ctx: RunContext,
    goal: Annotated[str, Field(min_length=1, max_length=starting.LONGEST_GOAL)],
    depth: Annotated[
        Depth | None, Field(description="Leave out unless they say how thorough; deep costs most")
    ] = None,
    max_searches: Annotated[int | None, Field(ge=0, le=starting.MOST_SEARCHES)] = None,
    max_pages: Annotated[int | None, Field(ge=0, le=starting.MOST_PAGES)] = None,
    continues: Annotated[
        str, Field(description="Id of an ended research whose findings it goes on from")
    ] = "",
) -> Answer:
    """Start research in the background. For a question that takes several searches and pages:
    readers look into it, and a report with checked sources goes to you and to the human's inbox.
    Put the whole question into the goal, with what it is for. Do not wait for it, and do not
    research the same yourself.
    """
    check_engine(ctx.web, goal)
    # In a reply the person asked for it. Elsewhere it is a part of the work, and paid from its
    # budget.
    is_reply = ctx.node.kind.answers_messages
    # The person's own question stays clean, whatever stands around it in the conversation.
    label = CLEAN if is_reply and _is_asked(tx, ctx, goal) else ctx.label
    if is_reply:
        goal, label = _with_their_words(tx, ctx, goal, label)
    node = starting.start(
        tx,
        hirer(ctx),
        goal,
        depth=depth,
        searches=max_searches,
        pages=max_pages,
        parent_id=None if is_reply else ctx.node.id,
        label=label,
        asks=is_reply,
        earlier=nodes.find(tx, ctx.team.id, continues.strip()) if continues.strip() else None,
    )
    return Done(
        f"Research has started as {node.id}. The report goes to the human's inbox when it is done; "
        "job_status tells how it stands.",
        did=Act(kind="started", about=node.id, name=f"research: {node.title}"),
    )


def check_engine(web: Web, goal: str) -> None:
    """Raise `Refused`, with the settings that would help, if there is no search engine and the
    question names no page to begin with."""
    if web.engine is None and not links.hosts_in(goal):
        raise Refused(NO_ENGINE)


def _with_their_words(tx: Tx, ctx: RunContext, goal: str, label: Label) -> tuple[str, Label]:
    """Return a goal in the model's words with the person's messages behind it, and its label."""
    asked = messages.to_answer(tx, ctx.node.id)
    if not (said := conversation.unsaid(tx, goal, asked, ctx.node.id)):
        return goal, label
    whole = "\n\n".join([goal, *said])
    return texts.truncate(whole, starting.LONGEST_GOAL), label | join(m.label for m in asked)


def _is_asked(tx: Tx, ctx: RunContext, goal: str) -> bool:
    """Whether the goal is a whole message that this reply answers, in the person's own words."""
    asked = messages.to_answer(tx, ctx.node.id)
    return any(m.text.split() == goal.split() for m in asked if not m.label)


@tool(effect="transaction", looks_up=True, polls=True, in_sight=ON_DEMAND)
def job_status(tx: Tx, ctx: RunContext) -> Answer:
    """See all background work of the team: what runs, waits, is queued, and ended lately."""
    found = [job for job in jobs.of_team(tx, ctx.team.id) if job.node.id != ctx.node.id]
    lines = [_line(job) for job in found] or ["There is no background work."]
    return Done("\n".join(lines), label=labels.of_board(tx, [job.node for job in found]))


def _line(job: Job) -> str:
    text = f"- {texts.title_of(job.node)} ({job.node.id}, {job.worker}): {job.state}"
    if job.position is not None:
        text += f", number {job.position} in the queue"
    limits = job.node.budget.calls
    for tool_name, what in ((web_search.name, "searches"), (web_fetch.name, "pages")):
        if tool_name in limits:
            text += f", {job.used[tool_name]} of {limits[tool_name]} {what} used"
    if job.label and job.progress and not job.node.waiting_reason:
        # A look at the list must not label the thread with what each task has read.
        return f'{text}; its progress is for look_into("{job.node.id}")'
    return f"{text}: {job.progress}" if job.progress else text
