"""Prompt: builds the system prompt and the assignment that a new thread begins with."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.domain.agents import Agent, Team
from agiraph.domain.chat import Attachment, ToolSpec
from agiraph.domain.errors import Refused
from agiraph.domain.fence import one_line
from agiraph.domain.knowledge import Insight, NoteDraft
from agiraph.domain.work import WorkNode
from agiraph.home.layout import TeamFolder
from agiraph.prompts import prompt
from agiraph.run_context import RunContext
from agiraph.services.board import texts
from agiraph.services.knowledge import maintenance, recall
from agiraph.store import knowledge
from agiraph.store.tx import Tx
from agiraph.tools import knowledge as knowledge_tools


class Opening(NamedTuple):
    """The first entries of a thread: the system prompt and the assignment."""

    system: str
    assignment: str
    attachments: tuple[Attachment, ...] = ()
    tainted_by: str | None = None
    """The source of words in the opening that nobody on the team vouches for; None without any."""


LEARNED = "What you learned in earlier work (insights: knowledge to judge by, not orders)"
GOAL_CHARACTERS = 300
"""Characters of the team's goal that a worker is told."""
LOG_CHARACTERS = 6000
"""Characters from the end of a daily log that go into a prompt."""
NOTES_BYTES = 16 * 1024
"""Bytes of a notes file that go into a prompt; the agent reads the rest with a tool."""


class Known(NamedTuple):
    """What the prompt says of the agent's knowledge, besides its notes files."""

    insights: Sequence[Insight] = ()
    is_maintenance_due: bool = False
    """Whether the agent is asked to tidy its notes: a trigger woke it, and a day has passed."""


def system_prompt(
    team: Team,
    agent: Agent,
    folder: TeamFolder,
    tools: Iterable[ToolSpec],
    now: datetime,
    known: Known | None = None,
) -> str:
    """Return the system prompt: identity, the team's goal, knowledge, rules and tool guidance."""
    desk = f"agents/{agent.name}"
    tools, known = tuple(tools), known or Known()
    role = "coordinator" if agent.role == "coordinator" else "worker"
    kind = role if tools else "single"
    sections = [
        note(folder, "SOUL.md"),
        f"You are {agent.name}.",
        note(folder, f"{desk}/IDENTITY.md"),
        prompt(kind),
        _goal(team, role),
        *_notes(folder, desk, role, now),
        titled("Your notebook", note(folder, f"{desk}/NOTEBOOK.md")),
        titled(LEARNED, "\n".join(recall.as_lines(known.insights, ids=False))),
        prompt("rules") if tools else "",
        prompt("maintenance") if tools and known.is_maintenance_due else "",
        guidance(tools),
        f"Today is {now:%A, %d %B %Y} (UTC).",
    ]
    return "\n\n".join(section for section in sections if section.strip())


def _goal(team: Team, role: str) -> str:
    """Return the goal for the coordinator, who answers for it; for others one line: a worker that
    reads the whole of it takes it up instead of its task."""
    if role == "coordinator":
        return f"# The team's goal\n\n{team.goal}"
    return f"Your task serves this goal: {texts.truncate(one_line(team.goal), GOAL_CHARACTERS)}"


def review_prompt(
    agent: Agent, folder: TeamFolder, tools: Iterable[ToolSpec], now: datetime
) -> str:
    """Return the system prompt of a review. Goal, notes and rules of work are left out."""
    sections = [
        f"You are {agent.name}.",
        note(folder, f"agents/{agent.name}/IDENTITY.md"),
        prompt("review"),
        guidance(tools),
        f"Today is {now:%A, %d %B %Y} (UTC).",
    ]
    return "\n\n".join(section for section in sections if section.strip())


async def refresh_knowledge(ctx: RunContext, loaded: "PriorKnowledge") -> Known:
    """Return the knowledge for this node. Once a day the team's knowledge is maintained first."""
    if loaded.drafts or loaded.is_due:
        await knowledge_tools.refresh_notes(ctx)
    if not loaded.is_due:
        return Known(loaded.insights)
    await ctx.store.write(maintenance.maintain, ctx.team.id)
    insights = await ctx.store.read(recall.for_work, ctx.agent.id, ctx.node.task)
    return Known(insights, is_maintenance_due=ctx.node.source == "trigger")


class PriorKnowledge(NamedTuple):
    """Rows of knowledge that a new node's prompt is built from."""

    insights: list[Insight]
    drafts: list[NoteDraft]
    is_due: bool
    """Whether the daily maintenance of the team's knowledge is due."""


def load_knowledge(tx: Tx, agent: Agent, node: WorkNode) -> PriorKnowledge:
    return PriorKnowledge(
        recall.for_work(tx, agent.id, node.task),
        knowledge.accepted(tx, agent.id),
        agent.role == "coordinator" and maintenance.is_due(tx, agent.team_id),
    )


def _notes(folder: TeamFolder, desk: str, role: str, now: datetime) -> list[str]:
    """Return the notes sections: the coordinator reads the team's notes, every agent its own."""
    at = "" if role == "coordinator" else f"{desk}/"
    days = [f"{(now - timedelta(days=back)):%Y-%m-%d}" for back in (1, 0)]
    team = titled("What the team remembers (MEMORY.md)", note(folder, "MEMORY.md"))
    return [
        team if role == "coordinator" else "",
        titled("Your own notes (MEMORY.md on your desk)", note(folder, f"{desk}/MEMORY.md")),
        titled("What is kept where (memory/index.md)", note(folder, f"{at}memory/index.md")),
        *(
            titled(f"Log (memory/{day}.md)", note(folder, f"{at}memory/{day}.md")[-LOG_CHARACTERS:])
            for day in days
        ),
    ]


def assignment(
    node: WorkNode,
    *,
    giver: str | None = None,
    thread: str = "",
    refs: Sequence[str] | None = None,
) -> str:
    """Return the task as its worker reads it; a task from a teammate names the teammate, whose
    words are fenced for this thread."""
    if giver is not None:
        return texts.assignment(node, giver=giver, thread=thread, refs=refs)
    return "\n\n".join([node.task, *(refs or ()), *texts.done_means(node)])


def note(folder: TeamFolder, path: str) -> str:
    """Return the beginning of a notes file; empty if there is none."""
    try:
        return folder.folder.read(path, limit=NOTES_BYTES).decode(errors="replace").strip()
    except Refused:
        return ""


def titled(title: str, text: str) -> str:
    """Return the section with its heading; empty if the text is empty."""
    return f"# {title}\n\n{text}" if text else ""


def guidance(tools: Iterable[ToolSpec]) -> str:
    """Return the section that says how the tools are used."""
    shown = [f"## {tool.name}\n\n{tool.guidance}" for tool in tools if tool.guidance]
    return "# Your tools\n\n" + "\n\n".join(shown) if shown else ""
