"""Prompt: what an agent is told when it sits down to a node."""

from collections.abc import Iterable
from datetime import datetime

from agiraph.domain.chat import ToolSpec
from agiraph.domain.errors import Refused
from agiraph.domain.people import Agent, Team
from agiraph.domain.work import WorkNode
from agiraph.home.layout import TeamFolder
from agiraph.prompts import prompt
from agiraph.services import notices

NOTES_LIMIT = 16 * 1024
"""How much of a notes file goes into a prompt; the rest can be read with a tool."""


def system_prompt(
    team: Team,
    agent: Agent,
    folder: TeamFolder,
    tools: Iterable[ToolSpec],
    now: datetime,
) -> str:
    """Who the agent is, what the team wants, what it noted before, and how its tools are used."""
    desk = f"agents/{agent.name}"
    tools = tuple(tools)
    role = "coordinator" if agent.role == "coordinator" else "worker"
    manner = role if tools else "single"
    sections = [
        _note(folder, "SOUL.md"),
        f"You are {agent.name}.",
        _note(folder, f"{desk}/IDENTITY.md"),
        prompt(manner),
        f"# The team's goal\n\n{team.goal}",
        _titled("What the team remembers (MEMORY.md)", _note(folder, "MEMORY.md"))
        if role == "coordinator"
        else "",
        _titled("Your own notes (MEMORY.md on your desk)", _note(folder, f"{desk}/MEMORY.md")),
        _titled("Your notebook", _note(folder, f"{desk}/NOTEBOOK.md")),
        prompt("rules") if tools else "",
        _guidance(tools),
        f"Today is {now:%A, %d %B %Y} (UTC).",
    ]
    return "\n\n".join(section for section in sections if section.strip())


def assignment(node: WorkNode, *, giver: str | None = None) -> str:
    """The node as its worker reads it: in an envelope, if a teammate gave it."""
    if giver is not None:
        return notices.assignment(node, giver=giver)
    parts = [node.task]
    if node.acceptance:
        parts.append("Done means:\n" + "\n".join(f"- {line}" for line in node.acceptance))
    return "\n\n".join(parts)


def _note(folder: TeamFolder, path: str) -> str:
    try:
        return folder.folder.read(path, limit=NOTES_LIMIT).decode(errors="replace").strip()
    except Refused:
        return ""


def _titled(title: str, text: str) -> str:
    return f"# {title}\n\n{text}" if text else ""


def _guidance(tools: Iterable[ToolSpec]) -> str:
    shown = [f"## {tool.name}\n\n{tool.guidance}" for tool in tools if tool.guidance]
    return "# Your tools\n\n" + "\n\n".join(shown) if shown else ""
