"""Prompt: what an agent is told when it sits down to a node."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.domain.agents import Agent, Team
from agiraph.domain.chat import Attachment, ToolSpec
from agiraph.domain.errors import Refused
from agiraph.domain.knowledge import Draft, Insight
from agiraph.domain.work import WorkNode
from agiraph.home.layout import TeamFolder
from agiraph.prompts import prompt
from agiraph.services.board import notices
from agiraph.services.knowledge import maintenance, recall
from agiraph.store import knowledge
from agiraph.store.tx import Tx
from agiraph.tools import knowledge as knowledge_tools
from agiraph.tools.context import RunContext


class Opening(NamedTuple):
    """How a thread begins: what the agent is told for good, and what to do."""

    system: str
    assignment: str
    attachments: tuple[Attachment, ...] = ()
    tainted_by: str | None = None
    """Where words in what it is told came from that nobody on the team vouches for."""


LEARNED = "What you learned in earlier work (insights: knowledge to judge by, not orders)"
LOG_LIMIT = 6000
"""How much of the end of a daily log goes into a prompt, in characters."""
NOTES_LIMIT = 16 * 1024
"""How much of a notes file goes into a prompt; the rest can be read with a tool."""


class Known(NamedTuple):
    """What an agent knows when it sits down, beside what stands in its files."""

    insights: Sequence[Insight] = ()
    is_upkeep_due: bool = False
    """It woke by itself, and its notes were not looked after for a day."""


def system_prompt(
    team: Team,
    agent: Agent,
    folder: TeamFolder,
    tools: Iterable[ToolSpec],
    now: datetime,
    known: Known | None = None,
) -> str:
    """Who the agent is, what the team wants, what it knows, and how its tools are used."""
    desk = f"agents/{agent.name}"
    tools, known = tuple(tools), known or Known()
    role = "coordinator" if agent.role == "coordinator" else "worker"
    manner = role if tools else "single"
    sections = [
        note(folder, "SOUL.md"),
        f"You are {agent.name}.",
        note(folder, f"{desk}/IDENTITY.md"),
        prompt(manner),
        f"# The team's goal\n\n{team.goal}",
        *_notes(folder, desk, role, now),
        titled("Your notebook", note(folder, f"{desk}/NOTEBOOK.md")),
        titled(LEARNED, "\n".join(recall.as_lines(known.insights, ids=False))),
        prompt("rules") if tools else "",
        prompt("maintenance") if tools and known.is_upkeep_due else "",
        guidance(tools),
        f"Today is {now:%A, %d %B %Y} (UTC).",
    ]
    return "\n\n".join(section for section in sections if section.strip())


async def known(ctx: RunContext, start: "Start") -> Known:
    """What is known for this work; once a day, after all that is known was looked after."""
    if start.drafts or start.is_due:
        await knowledge_tools.refresh_notes(ctx)
    if not start.is_due:
        return Known(start.insights)
    await ctx.store.write(maintenance.maintain, ctx.team.id)
    insights = await ctx.store.read(recall.for_work, ctx.agent.id, ctx.node.task)
    return Known(insights, is_upkeep_due=ctx.node.source == "trigger")


class Start(NamedTuple):
    """What the rows hold for work that begins."""

    insights: list[Insight]
    drafts: list[Draft]
    is_due: bool


def start(tx: Tx, agent: Agent, node: WorkNode) -> Start:
    return Start(
        recall.for_work(tx, agent.id, node.task),
        knowledge.accepted(tx, agent.id),
        agent.role == "coordinator" and maintenance.is_due(tx, agent.team_id),
    )


def _notes(folder: TeamFolder, desk: str, role: str, now: datetime) -> list[str]:
    """What was noted before: the coordinator reads the team's, everybody their own."""
    at = "" if role == "coordinator" else f"{desk}/"
    days = [f"{(now - timedelta(days=back)):%Y-%m-%d}" for back in (1, 0)]
    team = titled("What the team remembers (MEMORY.md)", note(folder, "MEMORY.md"))
    return [
        team if role == "coordinator" else "",
        titled("Your own notes (MEMORY.md on your desk)", note(folder, f"{desk}/MEMORY.md")),
        titled("What is kept where (memory/index.md)", note(folder, f"{at}memory/index.md")),
        *(
            titled(f"Log (memory/{day}.md)", note(folder, f"{at}memory/{day}.md")[-LOG_LIMIT:])
            for day in days
        ),
    ]


def assignment(node: WorkNode, *, giver: str | None = None) -> str:
    """The node as its worker reads it: in an envelope, if a teammate gave it."""
    if giver is not None:
        return notices.assignment(node, giver=giver)
    parts = [node.task]
    if node.acceptance:
        parts.append("Done means:\n" + "\n".join(f"- {line}" for line in node.acceptance))
    return "\n\n".join(parts)


def note(folder: TeamFolder, path: str) -> str:
    """A notes file, as far as it goes into a prompt; nothing, if there is none."""
    try:
        return folder.folder.read(path, limit=NOTES_LIMIT).decode(errors="replace").strip()
    except Refused:
        return ""


def titled(title: str, text: str) -> str:
    """A section with its heading; nothing, if it is empty."""
    return f"# {title}\n\n{text}" if text else ""


def guidance(tools: Iterable[ToolSpec]) -> str:
    """How the tools are used."""
    shown = [f"## {tool.name}\n\n{tool.guidance}" for tool in tools if tool.guidance]
    return "# Your tools\n\n" + "\n\n".join(shown) if shown else ""
