"""Prompt: builds the system prompt and the assignment that a new thread begins with.

They show note files, which may hold untrusted text. A thread that holds untrusted text already is
shown the newest version, in a fence. A clean thread is shown the last clean version, and one line
of the runtime that says that there is a newer one. Of MEMORY.md every thread is shown the confirmed
lines; the others stand in a fence behind them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple, Protocol, cast

from agiraph.core.domain.agents import Agent, Team, Trust
from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.features import brought
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.records.notes import fits, query_for, unverified_lines
from agiraph.core.domain.records.skills import Skill
from agiraph.core.domain.text.fence import Line, enclose_foreign, one_line, show
from agiraph.core.domain.text.passages import search_words
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.window_use import (
    GOAL,
    NOTEBOOK,
    NOTES_INDEX,
    NOTES_LOG,
    OWN_MEMORY,
    STATE,
    TEAM_MEMORY,
    TEAM_PLAN,
)
from agiraph.core.domain.work import WorkNode
from agiraph.core.home.layout import INDEX, MEMORY, PLAN, SOUL, TeamFolder
from agiraph.core.prompts import prompt
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.prompts.means import Means, TeamState, folders
from agiraph.core.services.board import texts
from agiraph.core.store.texts import file_labels
from agiraph.core.store.texts.file_labels import FileLabel
from agiraph.core.store.tx import Tx
from agiraph.core.tools import skills
from agiraph.core.tools.delegation import assign_task
from agiraph.core.tools.toolsets import Toolset

NOTES_BYTES = 16 * 1024
"""Bytes of an identity and of a notebook that go into a prompt."""
LOG_BYTES = 2000
"""Bytes of a daily log, from its end."""
UNWRITTEN = frozenset({MEMORY.strip(), INDEX.strip(), PLAN.strip()})
"""Notes files as they are before anybody has written in them."""
MORE = "… more: read_file({path!r})"
NEWER = (
    "(There is a newer unverified version of {at:%d %b}, from {by}: read_file({path!r}) shows it.)"
)
UNCHECKED = "({lines} in it nobody has checked, from {by}: read_file({path!r}) shows them.)"
UNVERIFIED_LINES = "Lines that nobody has checked:"
_HEADING_ONLY = re.compile(r"#[^\n]*")


@dataclass(slots=True)
class ShownFiles:
    """The files of a team as one new thread is shown them."""

    folder: TeamFolder
    thread: str = ""
    labelled: Mapping[str, FileLabel] = field(default_factory=dict[str, FileLabel])
    """What is known of the files that carry a label, by path."""
    trust: Trust = "standard"
    is_labelled: bool = False
    """Whether the thread holds untrusted text anyway."""
    label: Label = CLEAN
    """The sources of the words that were shown in a fence so far."""
    query: str = ""
    """What the thread works on: unverified lines with these words are shown to it."""

    @property
    def shows_labelled(self) -> bool:
        """Whether untrusted text that was written down is shown, in a fence."""
        return self.trust == "open" or (self.trust == "standard" and self.is_labelled)

    def note(self, path: str, longest: int = NOTES_BYTES) -> str:
        """Return the beginning of a notes file; empty if there is none or nobody has written in
        it."""
        text, more = _beginning(path, self._data(path, longest + 1), longest)
        return self._versioned(path, text, more)

    def memory(self, path: str, longest: int) -> str:
        """Return the beginning of a MEMORY.md: its confirmed lines and, in a fence, the others, if
        the thread is labelled anyway or one of them fits its work."""
        file = self.labelled.get(path)
        if file is None or self.trust != "standard":
            return self.note(path, longest)
        confirmed = file.confirmed_text or ""
        text, more = _beginning(path, confirmed.encode(errors="replace")[: longest + 1], longest)
        written = self._read(path, NOTES_BYTES).decode(errors="ignore")
        if not (lines := unverified_lines(written, confirmed)):
            return text + more
        terms = search_words(self.query)
        if self.is_labelled or any(fits(line, terms) for line in lines):
            added = "\n".join(lines).encode(errors="replace")
            shown, others = _beginning(path, added[: longest + 1], longest)
            unverified = f"{UNVERIFIED_LINES}\n{self.fence(shown, file.label)}{others}"
        else:
            by, count = file.label.describe(()), counted(len(lines), "line")
            unverified = UNCHECKED.format(lines=count, by=by, path=path)
        return f"{text}{more}\n\n{unverified}".strip()

    def log(self, path: str) -> str:
        """Return the end of a daily log."""
        data = self._data(path, NOTES_BYTES)
        return self._versioned(path, data[-LOG_BYTES:].decode(errors="ignore").strip())

    def fence(self, text: str, label: Label) -> str:
        """Return untrusted text in a fence, and add its label to that of the thread."""
        self.label |= label
        # A stranger has chosen the names of hosts, so a prompt only counts them.
        return enclose_foreign(text, thread=self.thread, source=label.describe(()))

    def _data(self, path: str, limit: int) -> bytes:
        """Return the beginning of the version that is shown."""
        file = self.labelled.get(path)
        if file is not None and not self.shows_labelled:
            return (file.confirmed_text or "").encode(errors="replace")[:limit]
        return self._read(path, limit)

    def _read(self, path: str, limit: int) -> bytes:
        try:
            return self.folder.folder.read(path, limit=limit)
        except Refused:
            return b""

    def lines(self, lines: Sequence[Line], room: int) -> str:
        """Return lines of a prompt. Untrusted text in them is in a fence, or the runtime's words
        stand instead of it."""
        is_labelled = self.is_labelled and self.shows_labelled
        shown = show(lines, thread=self.thread, is_labelled=is_labelled, room=room)
        self.label |= shown.label
        return shown.text

    def _versioned(self, path: str, text: str, more: str = "") -> str:
        """Return the shown version of a file: in a fence if it holds untrusted text, with a
        remark if a newer one does."""
        if (file := self.labelled.get(path)) is None:
            return text + more
        if not self.shows_labelled:
            by = file.label.describe(())
            newer = NEWER.format(at=file.created_at, by=by, path=path)
            return f"{text}{more}\n\n{newer}".strip()
        return f"{self.fence(text, file.label)}{more}" if text else ""


def _beginning(path: str, data: bytes, longest: int) -> tuple[str, str]:
    """Return the beginning of a notes file, empty if nobody has written in it, and what says where
    the rest is."""
    text = data[:longest].decode(errors="ignore").strip()
    if text in UNWRITTEN or _HEADING_ONLY.fullmatch(text):
        return "", ""
    return text, "" if len(data) <= longest else f"\n{MORE.format(path=path)}"


class Opening(NamedTuple):
    """The first entries of a thread: the system prompt and the assignment."""

    system: str
    assignment: str
    attachments: tuple[Attachment, ...] = ()
    label: Label = CLEAN
    """The sources of untrusted text in the system prompt, where they stand in a fence."""
    is_lean: bool = False
    """Whether it is the short form, for a small window."""
    opened: Callable[[Tx], None] | None = None
    """What is written with it."""
    summarise_upto: str = ""
    """Of a reply: the id of the newest message that the next summary should cover; empty if none
    is needed."""


class Told(Protocol):
    """What one feature tells a new thread."""

    @property
    def label(self) -> Label:
        """The sources of untrusted text in it, which stands in a fence."""
        ...

    def sections(self, files: ShownFiles, *, has_tools: bool) -> list[str]:
        """Return sections of the system prompt; `files` encloses untrusted text."""
        ...

    def short_sections(self, files: ShownFiles) -> list[str]:
        """Return those of the short prompt, for a small window."""
        ...

    def opened(self, tx: Tx, *, is_lean: bool) -> None:
        """Record that a thread begins with it, in the transaction that writes its prompt."""
        ...


class Teller(Protocol):
    """Finds what a feature tells; `Feature.teller` has the place of one."""

    def load(self, tx: Tx, team: Team, agent: Agent, node: WorkNode) -> Any:
        """Return the rows that it needs, in the transaction that loads the node."""
        ...

    async def tell(self, ctx: RunContext, loaded: Any) -> Told:
        """Return what it tells, from these rows."""
        ...


@cache
def find_tellers() -> tuple[Teller, ...]:
    """Return the find_tellers of all features that have one."""
    return tuple(cast(list[Teller], brought("teller")))


BEFORE = "What was said, and what you did last, before the human asked for this"
BEFORE_BYTES, LEAN_BEFORE_BYTES = 24_000, 3_000
GOAL_CHARACTERS = 300
"""Characters of the team's goal that a worker is told."""
LEAN_WINDOW = 16_000
"""Tokens of a window below which a new thread gets the short prompt and only the basic tools."""
LEAN_SOUL_CHARACTERS = 300
SOUL_BYTES, MEMORY_BYTES, INDEX_BYTES, PLAN_BYTES = 2000, 4000, 1200, 2000
"""Bytes of each notes file that go into a prompt, from its beginning; the agent reads the rest with
a tool."""

_FILES = (
    "- Write results into files in scratch/ as you get them. Older messages may be replaced by a "
    "summary; files stay."
)
_NO_FILES = "- You have no tool to write files. Your summary holds the whole result."
_BOTH, _SUMMARY = "Your summary and your files in scratch/ are", "Your summary is"


@dataclass(frozen=True, slots=True)
class Reader:
    """The agent that reads a prompt, and what it works with."""

    agent: Agent
    folder: TeamFolder
    tools: Toolset = Toolset({})
    giver: str | None = None
    """The teammate who gave it the task; None for a person."""
    means: Means = Means()
    team_state: TeamState | None = None
    """How the team stands, for its coordinator."""
    _: KW_ONLY
    is_lean: bool = False
    shown: ShownFiles | None = None
    """The team's files with their labels; without it all of them are clean."""
    skills: tuple[Skill, ...] = ()
    zone: str = "UTC"
    """The time zone of the person whom it works for."""
    before: str = ""
    """The end of the conversation that the task comes from."""

    @property
    def files(self) -> ShownFiles:
        return self.shown or ShownFiles(self.folder)

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
        writes = any(tool.properties.writes_files for tool in self.tools.tools.values())
        return prompt(name).format(
            giver=self.giver or "the person",
            ending=self.ending,
            files=_FILES if writes else _NO_FILES,
            delivered=_BOTH if writes else _SUMMARY,
        )


def system_prompt(team: Team, reader: Reader, now: datetime, told: Sequence[Told] = ()) -> str:
    """Return the system prompt: role and rules, identity, the team's goal, its files, and what
    features tell.

    What is the same for all agents of a role stands first. The prompt never changes; a note in the
    thread tells a new date.
    """
    if reader.is_lean and reader.tools.shown:
        return join_sections(_lean_sections(team, reader, now, told))
    has_tools = bool(reader.tools.shown)
    sections = [
        reader.fill(("coordinator" if reader.leads else "worker") if has_tools else "single"),
        reader.fill("rules") if has_tools else "",
        _on_demand(reader.tools),
        *_means(team, reader),
        f"You are {reader.agent.name}.",
        reader.files.note(f"{reader.desk}/IDENTITY.md"),
        reader.files.note("SOUL.md", SOUL_BYTES),
        _goal(team, reader),
        folders(team),
        skills.section(reader.skills, reader.tools.tools),
        _plan(reader),
        *_notes(reader, now),
        titled(NOTEBOOK, reader.files.note(f"{reader.desk}/NOTEBOOK.md")),
        *(text for each in told for text in each.sections(reader.files, has_tools=has_tools)),
        titled(BEFORE, reader.before),
        _team_state(reader, now),
    ]
    return join_sections(sections)


def _lean_sections(team: Team, reader: Reader, now: datetime, told: Sequence[Told]) -> list[str]:
    return [
        reader.fill("lean_coordinator" if reader.leads else "lean"),
        reader.means.short() if reader.leads else "",
        f"You are {reader.agent.name}.",
        reader.files.note(f"{reader.desk}/IDENTITY.md", SOUL_BYTES),
        _lean_soul(reader.files),
        _goal(team, reader),
        folders(team),
        skills.names(reader.skills, reader.tools.tools),
        _plan(reader),
        *(text for each in told for text in each.short_sections(reader.files)),
        titled(BEFORE, reader.before),
        today(now, reader.zone),
    ]


def _lean_soul(files: ShownFiles) -> str:
    """Return the beginning of SOUL.md; nothing of the one that agiraph wrote itself."""
    text = files.note("SOUL.md", SOUL_BYTES)
    return "" if text == SOUL.strip() else texts.truncate(text, LEAN_SOUL_CHARACTERS)


def _on_demand(tools: Toolset) -> str:
    """Return the line that lists the tools which are not shown."""
    if not tools.listed:
        return ""
    return f"More tools, by `tool_help` and `call_tool`: {', '.join(tools.listed)}."


def _means(team: Team, reader: Reader) -> list[str]:
    """Return the workers for the agent, if it sees the tool to assign tasks; for a coordinator also
    what it may do without a person."""
    is_shown = any(spec.name == assign_task.name for spec in reader.tools.shown)
    if not is_shown:
        return []
    return [
        titled("Workers (the `agent` of `assign_task`)", reader.means.workers()),
        titled("What you may do", reader.means.rules(team)) if reader.leads else "",
    ]


def _plan(reader: Reader) -> str:
    """Return PLAN.md for the coordinator, who keeps it for the goal."""
    text = reader.files.note("PLAN.md", PLAN_BYTES) if reader.leads else ""
    return titled(TEAM_PLAN, text)


def _team_state(reader: Reader, now: datetime) -> str:
    """Return the section with the date and the team's state: last, because it differs by thread."""
    if reader.team_state is None:
        return today(now, reader.zone)
    lines = [*reader.team_state.lines(reader.means), f"- {today(now, reader.zone)}"]
    return titled(STATE, "\n".join(lines))


def _goal(team: Team, reader: Reader) -> str:
    """Return the goal for the coordinator, who answers for it; for others one line: a worker that
    reads the whole of it takes it up instead of its task."""
    if reader.leads:
        return titled(GOAL, team.goal)
    return f"Your task serves this goal: {texts.truncate(one_line(team.goal), GOAL_CHARACTERS)}"


def today(now: datetime, zone: str = "UTC") -> str:
    human = "" if zone == "UTC" else f" The human's time zone is {zone}."
    return f"Today is {now:%A, %d %B %Y} (UTC).{human}"


def public_opening(node: WorkNode, now: datetime) -> Opening:
    """Return the first entries of a public thread: rules, the date and the task.

    Nothing of the team's is in it, not even the name of its agent or of who gave the task.
    """
    task = "\n\n".join([node.task.strip(), *texts.done_means(node)])
    return Opening(join_sections([prompt("public"), today(now)]), task)


def join_sections(sections: Iterable[str]) -> str:
    return "\n\n".join(section for section in sections if section.strip())


async def with_files(
    ctx: RunContext, label: Label, build: Callable[[ShownFiles], str]
) -> tuple[str, ShownFiles]:
    """Build a system prompt from the team's files as a new thread is shown them; `label` is what
    the thread carries anyway."""
    paths = shown_paths(ctx.agent, ctx.clock.now())
    labelled = await ctx.store.look(file_labels.of, ctx.team.id, paths)
    while True:
        shown = ShownFiles(
            ctx.scope.team,
            ctx.lease.thread_id,
            labelled,
            ctx.team.trust,
            bool(label),
            query=query_for(ctx.team, ctx.agent, ctx.node.task),
        )
        system = build(shown)
        # A thread stores the label before it writes the file: if the labels are still the same,
        # none of the files that were read has got untrusted text meanwhile.
        before, labelled = labelled, await ctx.store.look(file_labels.of, ctx.team.id, paths)
        if labelled == before:
            return system, shown


def _notes(reader: Reader, now: datetime) -> list[str]:
    """Return the notes sections: the coordinator reads the team's notes, every agent its own."""
    files, desk = reader.files, reader.desk
    at = "" if reader.leads else f"{desk}/"
    team = files.memory("MEMORY.md", MEMORY_BYTES) if reader.leads else ""
    return [
        titled(TEAM_MEMORY, team),
        titled(OWN_MEMORY, files.memory(f"{desk}/MEMORY.md", MEMORY_BYTES)),
        titled(NOTES_INDEX, files.note(f"{at}memory/index.md", INDEX_BYTES)),
        *(titled(f"{NOTES_LOG} {day}", files.log(f"{at}memory/{day}.md")) for day in _days(now)),
    ]


def _days(now: datetime) -> list[str]:
    """Return the days whose logs a prompt shows."""
    return [f"{(now - timedelta(days=back)):%Y-%m-%d}" for back in (1, 0)]


def shown_paths(agent: Agent, now: datetime) -> list[str]:
    """Return the paths of the files whose text stands in this agent's prompts."""
    desk = f"agents/{agent.name}"
    at = "" if agent.role == "coordinator" else f"{desk}/"
    own = [f"{desk}/{name}.md" for name in ("IDENTITY", "MEMORY", "NOTEBOOK")]
    return [
        "SOUL.md",
        "MEMORY.md",
        "PLAN.md",
        *own,
        *(f"{at}memory/{day}.md" for day in _days(now)),
    ]


def assignment(
    node: WorkNode,
    *,
    giver: str | None = None,
    thread: str = "",
    refs: Sequence[str] | None = None,
    said: Sequence[str] = (),
) -> str:
    """Return the task as its worker reads it, and what a person `said` about it; a task from a
    teammate names the teammate, whose words are fenced for this thread."""
    if giver is not None:
        return texts.assignment(node, giver=giver, thread=thread, refs=refs)
    return "\n\n".join([node.task, *said, *(refs or ()), *texts.done_means(node)])


def titled(title: str, text: str) -> str:
    """Return the section with its heading; empty if the text is empty."""
    return f"# {title}\n\n{text}" if text else ""
