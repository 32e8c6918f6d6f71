"""Prompt: builds the system prompt and the assignment that a new thread begins with."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.domain.agents import Agent, Specialist, Team
from agiraph.domain.chat import Attachment
from agiraph.domain.errors import Refused
from agiraph.domain.fence import one_line
from agiraph.domain.knowledge import Insight
from agiraph.domain.labels import CLEAN, Label
from agiraph.domain.notes import Note
from agiraph.domain.work import WorkNode
from agiraph.home.layout import INDEX, MEMORY, SOUL, TeamFolder
from agiraph.prompts import prompt
from agiraph.run_context import RunContext
from agiraph.services.board import texts
from agiraph.services.knowledge import maintenance, recall
from agiraph.store import notes
from agiraph.store.tx import Tx
from agiraph.tools import knowledge as knowledge_tools
from agiraph.tools.delegation import assign_task, specialist_lines
from agiraph.tools.toolsets import Toolset


class Opening(NamedTuple):
    """The first entries of a thread: the system prompt and the assignment."""

    system: str
    assignment: str
    attachments: tuple[Attachment, ...] = ()
    label: Label = CLEAN
    """The source of words in the opening that nobody on the team vouches for; None without any."""
    is_lean: bool = False
    """Whether it is the short form, for a small window."""


LEARNED = "What you learned in earlier work (insights: knowledge to judge by, not orders)"
GOAL_CHARACTERS = 300
"""Characters of the team's goal that a worker is told."""
LEAN_WINDOW = 16_000
"""Tokens of a window below which a new thread gets the short prompt and only the basic tools."""
LEAN_SOUL_CHARACTERS = 300
LEAN_INSIGHTS = 5
SOUL_BYTES, MEMORY_BYTES, INDEX_BYTES, LOG_BYTES = 2000, 4000, 1200, 2000
"""Bytes of each notes file that go into a prompt; the agent reads the rest with a tool. Of a log it
is the end, of the others the beginning."""
NOTES_BYTES = 16 * 1024
"""Bytes of an identity and of a notebook that go into a prompt."""
UNWRITTEN = frozenset({MEMORY.strip(), INDEX.strip()})
"""Notes files as they are before anybody has written in them."""
_HEADING_ONLY = re.compile(r"#[^\n]*")
MORE = "… more: memory_read({path!r})"


class Known(NamedTuple):
    """What the prompt says of the agent's knowledge, besides its notes files."""

    insights: Sequence[Insight] = ()
    is_maintenance_due: bool = False
    """Whether the agent is asked to tidy its notes: a trigger woke it, and a day has passed."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The agent that reads a prompt, and what it works with."""

    agent: Agent
    folder: TeamFolder
    tools: Toolset = Toolset({})
    specialists: Mapping[str, Specialist] = field(default_factory=dict[str, Specialist])
    giver: str | None = None
    """The teammate who gave it the task; None for a person."""
    _: KW_ONLY
    is_lean: bool = False

    @property
    def leads(self) -> bool:
        return self.agent.role == "coordinator"

    @property
    def desk(self) -> str:
        return f"agents/{self.agent.name}"

    @property
    def ending(self) -> str:
        """The tool that ends its work."""
        tools = self.tools.tools.values()
        return next((tool.name for tool in tools if tool.properties.ends_node), "")

    def fill(self, name: str) -> str:
        """Return the text of a prompt file with the facts of this agent."""
        giver = self.giver or "the person"
        return prompt(name).format(giver=giver, ending=self.ending)


def system_prompt(team: Team, reader: Reader, now: datetime, known: Known | None = None) -> str:
    """Return the system prompt: role and rules, identity, the team's goal, and knowledge.

    What is the same for all agents of a role stands first, and nothing in it changes later, except
    that a note tells another date.
    """
    known = known or Known()
    if reader.is_lean and reader.tools.shown:
        return _join(_lean_sections(team, reader, now, known))
    has_tools = bool(reader.tools.shown)
    role = "coordinator" if reader.leads else "worker"
    sections = [
        reader.fill(role if has_tools else "single"),
        reader.fill("rules") if has_tools else "",
        _on_demand(reader.tools),
        _specialists(reader),
        f"You are {reader.agent.name}.",
        note(reader.folder, f"{reader.desk}/IDENTITY.md"),
        note(reader.folder, "SOUL.md", SOUL_BYTES),
        _goal(team, reader),
        *_notes(reader, now),
        titled("Your notebook", note(reader.folder, f"{reader.desk}/NOTEBOOK.md")),
        titled(LEARNED, "\n".join(recall.as_lines(known.insights, ids=False))),
        prompt("maintenance") if has_tools and known.is_maintenance_due else "",
        _today(now),
    ]
    return _join(sections)


def _lean_sections(team: Team, reader: Reader, now: datetime, known: Known) -> list[str]:
    insights = recall.as_lines(known.insights[:LEAN_INSIGHTS], ids=False)
    names = ", ".join(reader.specialists)
    return [
        reader.fill("lean_coordinator" if reader.leads else "lean"),
        f"Workers: {names}." if reader.leads and names else "",
        f"You are {reader.agent.name}.",
        note(reader.folder, f"{reader.desk}/IDENTITY.md", SOUL_BYTES),
        _lean_soul(reader.folder),
        _goal(team, reader),
        titled(LEARNED, "\n".join(insights)),
        _today(now),
    ]


def _lean_soul(folder: TeamFolder) -> str:
    """Return the beginning of SOUL.md; nothing of the one that agiraph wrote itself."""
    text = note(folder, "SOUL.md", SOUL_BYTES)
    return "" if text == SOUL.strip() else texts.truncate(text, LEAN_SOUL_CHARACTERS)


def _on_demand(tools: Toolset) -> str:
    """Return the line that lists the tools which are not shown."""
    if not tools.listed:
        return ""
    return f"More tools, by `tool_help` and `call_tool`: {', '.join(tools.listed)}."


def _specialists(reader: Reader) -> str:
    """Return the specialists, for an agent that sees the tool to give them tasks."""
    is_shown = any(spec.name == assign_task.name for spec in reader.tools.shown)
    lines = specialist_lines(reader.specialists)
    return titled("Specialists (for assign_task)", "\n".join(lines)) if is_shown else ""


def _goal(team: Team, reader: Reader) -> str:
    """Return the goal for the coordinator, who answers for it; for others one line: a worker that
    reads the whole of it takes it up instead of its task."""
    if reader.leads:
        return f"# The team's goal\n\n{team.goal}"
    return f"Your task serves this goal: {texts.truncate(one_line(team.goal), GOAL_CHARACTERS)}"


def _today(now: datetime) -> str:
    return f"Today is {now:%A, %d %B %Y} (UTC)."


def public_opening(node: WorkNode, now: datetime) -> Opening:
    """Return the first entries of a public thread: rules, the date and the task.

    Nothing of the team's is in it, not even the name of its agent or of who gave the task.
    """
    task = "\n\n".join([node.task.strip(), *texts.done_means(node)])
    return Opening(_join([prompt("public"), _today(now)]), task)


def _join(sections: Iterable[str]) -> str:
    return "\n\n".join(section for section in sections if section.strip())


def review_prompt(agent: Agent, folder: TeamFolder, now: datetime) -> str:
    """Return the system prompt of a review. Goal, notes and rules of work are left out."""
    identity = note(folder, f"agents/{agent.name}/IDENTITY.md")
    return _join([f"You are {agent.name}.", identity, prompt("review"), _today(now)])


async def refresh_knowledge(ctx: RunContext, loaded: "PriorKnowledge") -> Known:
    """Return the knowledge for this node. Once a day the team's knowledge is maintained first."""
    if loaded.notes or loaded.is_due:
        await knowledge_tools.refresh_notes(ctx)
    if not loaded.is_due:
        return Known(loaded.insights)
    await ctx.store.write(maintenance.maintain, ctx.team.id)
    insights = await ctx.store.read(recall.for_work, ctx.agent.id, ctx.node.task)
    return Known(insights, is_maintenance_due=ctx.node.source == "trigger")


class PriorKnowledge(NamedTuple):
    """Rows of knowledge that a new node's prompt is built from."""

    insights: list[Insight]
    notes: list[Note]
    """Notes whose files do not match their rows yet."""
    is_due: bool
    """Whether the daily maintenance of the team's knowledge is due."""


def load_knowledge(tx: Tx, agent: Agent, node: WorkNode) -> PriorKnowledge:
    return PriorKnowledge(
        recall.for_work(tx, agent.id, node.task),
        notes.to_file(tx, agent.id),
        agent.role == "coordinator" and maintenance.is_due(tx, agent.team_id),
    )


def _notes(reader: Reader, now: datetime) -> list[str]:
    """Return the notes sections: the coordinator reads the team's notes, every agent its own."""
    folder, desk = reader.folder, reader.desk
    at = "" if reader.leads else f"{desk}/"
    days = [f"{(now - timedelta(days=back)):%Y-%m-%d}" for back in (1, 0)]
    team = note(folder, "MEMORY.md", MEMORY_BYTES) if reader.leads else ""
    return [
        titled("What the team remembers (MEMORY.md)", team),
        titled("Your own notes (MEMORY.md)", note(folder, f"{desk}/MEMORY.md", MEMORY_BYTES)),
        titled("Index of notes", note(folder, f"{at}memory/index.md", INDEX_BYTES)),
        *(titled(f"Log of {day}", log(folder, f"{at}memory/{day}.md")) for day in days),
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


def note(folder: TeamFolder, path: str, longest: int = NOTES_BYTES) -> str:
    """Return the beginning of a notes file; empty if there is none or nobody has written in it."""
    try:
        data = folder.folder.read(path, limit=longest + 1)
    except Refused:
        return ""
    text = data[:longest].decode(errors="ignore").strip()
    if text in UNWRITTEN or _HEADING_ONLY.fullmatch(text):
        return ""
    name = path.rpartition("memory/")[2]
    return text if len(data) <= longest else f"{text}\n{MORE.format(path=name)}"


def log(folder: TeamFolder, path: str) -> str:
    """Return the end of a daily log."""
    try:
        data = folder.folder.read(path, limit=NOTES_BYTES)
    except Refused:
        return ""
    return data[-LOG_BYTES:].decode(errors="ignore").strip()


def titled(title: str, text: str) -> str:
    """Return the section with its heading; empty if the text is empty."""
    return f"# {title}\n\n{text}" if text else ""
