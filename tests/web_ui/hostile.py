"""Hostile: a home in which every text that an agent or a stranger can choose is a payload.

Each payload has a mark, its place and its number, so that a test knows which of them a page has
shown.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from agiraph.api.feature_views.known import Insight, Memory, Note
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Thread, ToolCall
from agiraph.core.domain.events.work import (
    CallPreview,
    ModelFailed,
    NodeAssigned,
    NodeCreated,
    ToolResult,
    TurnAdded,
)
from agiraph.core.domain.ids import AgentId, NodeId, StageId, TeamId, ThreadId, TriggerId, new_id
from agiraph.core.domain.messages import Draft, MessageKind
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.grants import Grant
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.store import messages, threads
from agiraph.core.store.grants import GRANTS
from agiraph.core.store.nodes import NODES
from agiraph.core.store.stages import STAGES
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.texts import file_labels
from agiraph.core.store.texts.folder_changes import FOLDER_CHANGES, FolderChange
from agiraph.core.store.threads import THREADS
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge.rows import INSIGHTS, MEMORIES, NOTES
from agiraph.testing import World
from tests.web_ui.payloads import PAYLOADS

MODEL = "openai/test"
REFERENCES = tuple(n for n, words in enumerate(PAYLOADS) if "\n[" in words or words[:2] == "[^")
"""Payloads with reference definitions, which apply to the whole text that contains them."""
Numbers = Sequence[int]
EVERY = range(len(PAYLOADS))
FILES = {
    "all.md": "md0",
    "refs.md": f"refs{REFERENCES[0]}",
    "all.html": "html0",
    "all.svg": "svg0",
    "all.csv": "csv0",
    "all.py": "py0",
    "all.json": "json0",
    "all.txt": "txt0",
}
"""The files in the folder, and a mark that each of them shows."""


@dataclass(frozen=True, slots=True)
class Place:
    team: TeamId
    agent: AgentId


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    talk: Place
    tools: Place
    asks: Place
    board: Place
    files: Place
    known: Place
    numbers: Numbers
    """The payloads in every place; a file of Markdown, HTML and JSON has all."""
    thread: ThreadId
    whole: NodeId
    """A node with the payloads in every field."""
    letters: dict[str, str]
    """The ids of the long messages in the inbox, by kind."""
    request: str
    """A request for approval, with the payloads in every part of its call."""


def mark(where: str, n: int) -> str:
    return f"§{where}{n}"


def line(where: str, n: int) -> str:
    """Return a payload on one line, for names and titles."""
    return f"{mark(where, n)} {' '.join(PAYLOADS[n].split(chr(10)))}"


def text(where: str, n: int) -> str:
    """Return a payload as a text of its own, so that it begins a Markdown block."""
    return f"{mark(where, n)}\n\n{PAYLOADS[n]}"


def whole(where: str, numbers: Numbers) -> str:
    """Return these payloads in one text, each as a block."""
    return several(where, [n for n in numbers if n not in REFERENCES])


def every(where: str, numbers: Numbers) -> list[str]:
    return [line(where, n) for n in numbers]


def groups(numbers: Numbers, of: int) -> list[Numbers]:
    """Return the numbers in groups: rows that are slow to draw get several payloads each."""
    return [numbers[start : start + of] for start in range(0, len(numbers), of)]


def several(where: str, numbers: Numbers) -> str:
    return "\n\n".join(text(where, n) for n in numbers)


def lines(where: str, numbers: Numbers) -> str:
    return " ".join(line(where, n) for n in numbers)


async def hostile(path: Path, numbers: Numbers = EVERY) -> Hostile:
    """Make a home with the payloads of these numbers in every place, and with all in some files."""
    async with World(path, easy_endings=True) as world:
        founded = [
            await world.found("x", name=f"team {n}", model=MODEL, start=False) for n in range(6)
        ]
        talk, tools, asks, board, files, known = founded
        await world.store.write(_set_names_and_goal, founded, numbers)
        await world.store.write(_add_conversation, talk, numbers)
        thread = await world.store.write(_add_thread, tools, numbers)
        letters = await world.store.write(_add_questions, asks, numbers)
        node = await world.store.write(_add_board, board, numbers)
        request = await world.store.write(_add_request, board, node, numbers)
        await world.store.write(_add_knowledge, known, numbers)
        await world.store.write(_add_results, known, numbers)
        folder = path / "teams" / files.team.id
        _write_files(folder, numbers)
    places = {
        name: Place(one.team.id, one.coordinator.id)
        for name, one in zip(
            ("talk", "tools", "asks", "board", "files", "known"), founded, strict=True
        )
    }
    more = {"thread": thread, "whole": node, "letters": letters, "request": request}
    return Hostile(**places, numbers=numbers, **more)  # type: ignore[arg-type]


def _set_names_and_goal(tx: Tx, founded: list[NewTeam], numbers: Numbers) -> None:
    """Put a share of the payloads into each team's name, and all of them into the first goal."""
    names = every("team", numbers)
    share = -(-len(names) // len(founded))
    for place, one in enumerate(founded):
        some = " ".join(names[place * share : (place + 1) * share])
        # A paused team does no work, but still replies to people.
        TEAMS.update(tx, one.team.id, name=some, status="paused")
    TEAMS.update(tx, founded[0].team.id, goal="\n".join(every("goal", numbers)))


def say(
    tx: Tx,
    agent: Agent,
    words: str,
    *,
    by: str = "",
    kind: MessageKind = "message",
    title: str = "",
    options: tuple[str, ...] = (),
) -> str:
    said = bus.send(
        tx,
        Draft(
            team_id=agent.team_id,
            sender=by or agent.id,
            recipient=agent.id if by else OWNER,
            text=words,
            kind=kind,
            title=title,
            options=options,
        ),
        sets_to_work=False,
    )
    if by:
        messages.mark_seen(tx, [said.id])
    return said.id


def _add_conversation(tx: Tx, one: NewTeam, numbers: Numbers) -> None:
    for few in groups(numbers, 2):
        say(tx, one.coordinator, several("hum", few), by=OWNER)
        say(tx, one.coordinator, several("mod", few))


def _add_node(tx: Tx, one: NewTeam, **more: Any) -> WorkNode:
    given: dict[str, Any] = {
        "id": NodeId(new_id("node")),
        "team_id": one.team.id,
        "task": "x",
        "source": "user",
        "creator_id": OWNER,
        "status": NodeStatus.COMPLETED,
        "assignee_id": one.coordinator.id,
        "created_at": tx.now,
        "started_at": tx.now,
    }
    node = WorkNode(**given | more)
    NODES.insert(tx, node)
    told = {"node_id": node.id, "title": node.title, "parent_id": None, "creator_id": OWNER}
    tx.emit(one.team.id, NodeCreated(**told, lane="work", needs=[]))
    tx.emit(one.team.id, NodeAssigned(node_id=node.id, agent_id=one.coordinator.id))
    return node


def _add_thread(tx: Tx, one: NewTeam, numbers: Numbers) -> ThreadId:
    """Add a thread whose calls, answers, messages and errors are payloads."""
    node = _add_node(tx, one, title="x")
    thread = Thread(
        id=ThreadId(new_id("t")),
        team_id=one.team.id,
        agent_id=one.coordinator.id,
        node_id=node.id,
        created_at=tx.now,
    )
    THREADS.insert(tx, thread)
    NODES.update(tx, node.id, thread_id=thread.id)
    page = threads.append_point(tx, thread.id)
    about = {"node_id": node.id, "thread_id": thread.id, "agent_id": one.coordinator.id}
    for few in groups(numbers, 2):
        n = few[0]
        arguments = {"path": lines("arg", few), PAYLOADS[n][:80]: [PAYLOADS[few[-1]]]}
        call = ToolCall(id=f"call_{n}", name=lines("tool", few), arguments=arguments)
        page, turn = threads.append(
            tx, page, node_id=node.id, role="assistant", text=several("turn", few),
            calls=(call,), model=lines("model", few),
        )  # fmt: skip
        calls = [CallPreview(id=call.id, name=call.name, arguments=arguments)]
        tx.emit(one.team.id, TurnAdded(**about, seq=turn.seq, text=several("said", few),
                calls=calls, tokens=1, usd=None))  # fmt: skip
        answer = several("res", few)
        page, _ = threads.append(tx, page, node_id=node.id, role="tool", ref=call.id, text=answer)
        tx.emit(one.team.id, ToolResult(node_id=node.id, call_id=call.id, tool=call.name,
                failed=n % 4 == 0, text=answer))  # fmt: skip
        page, _ = threads.append(
            tx, page, node_id=node.id, role="user", ref=f"n{n}", text=several("told", few)
        )
        tx.emit(one.team.id, ModelFailed(node_id=node.id, reason=lines("lost", few)))
    return thread.id


def _add_questions(tx: Tx, one: NewTeam, numbers: Numbers) -> dict[str, str]:
    for few in groups(numbers, 2):
        options = tuple(line("opt", n) for n in few)
        say(tx, one.coordinator, several("ask", few), kind="question", options=options)
    say(tx, one.coordinator, whole("may", numbers), kind="approval")
    titles = " ".join(every("title", numbers))
    kinds: tuple[MessageKind, ...] = ("briefing", "report", "failure", "result")
    return {
        kind: say(tx, one.coordinator, whole(kind, numbers), kind=kind, title=titles)
        for kind in kinds
    }


def _add_board(tx: Tx, one: NewTeam, numbers: Numbers) -> NodeId:
    everything = _add_node(
        tx,
        one,
        title="everything",
        status=NodeStatus.WAITING,
        task=whole("task", numbers),
        result=whole("result", numbers),
        checkpoint=whole("point", numbers),
        doubts=tuple(
            Doubt(
                kind="task_failed",
                words=line("doubt", n),
                node_id=NodeId(new_id("node")),
                title=line("unsure", n),
            )
            for n in numbers
        ),
        waiting_reason="\n".join(every("wait", numbers)),
        acceptance=tuple(every("accept", numbers)),
        refs={line("ref", n): line("path", n) for n in numbers},
    )
    for some in groups(numbers, 20):
        stage = Stage(
            id=StageId(new_id("stage")),
            team_id=one.team.id,
            node_id=everything.id,
            name=lines("stage", some),
            created_at=tx.now,
        )
        STAGES.insert(tx, stage)
        for n in some:
            failed = {"status": NodeStatus.FAILED, "result": text("fail", n)}
            _add_node(tx, one, title=line("node", n), stage_id=stage.id, **failed)
    return everything.id


def call(numbers: Numbers) -> ToolCall:
    """Return a call whose name, arguments and nested values are payloads."""
    arguments: dict[str, Any] = {
        "command": whole("call", numbers),
        "nested": {"deep": [{line("key", n): PAYLOADS[n]} for n in numbers], "n": 1, "no": None},
        **{line("name", n): PAYLOADS[n] for n in numbers[:8]},
    }
    return ToolCall(id="call_1", name=line("tool", numbers[0]), arguments=arguments)


def _add_request(tx: Tx, one: NewTeam, node_id: NodeId, numbers: Numbers) -> str:
    asked = say(tx, one.coordinator, whole("why", numbers), kind="approval")
    messages.MESSAGES.update(tx, asked, node_id=node_id, call=call(numbers))
    return asked


def _add_knowledge(tx: Tx, one: NewTeam, numbers: Numbers) -> None:
    lead = one.coordinator
    for few in groups(numbers, 4):
        member = Agent(
            id=AgentId(new_id("agent")),
            team_id=one.team.id,
            name=lines("agent", few),
            role=lines("role", few),
            model=PAYLOADS[few[0]],
            created_at=tx.now,
        )
        AGENTS.insert(tx, member)
    about: dict[str, Any] = {"team_id": one.team.id, "agent_id": lead.id, "created_at": tx.now}
    for n in numbers:
        of: dict[str, Any] = {**about, "author": PAYLOADS[n]}
        MEMORIES.insert(tx, Memory(id=new_id("memory"), content=text("mem", n), **of))
        known = Insight(id=new_id("insight"), type="fact", content=text("ins", n), **of)
        INSIGHTS.insert(tx, replace(known, owner=lead.id))
        label = Label((f"file:{line('src', n)}",))
        note = Note(id=new_id("note"), path=line("draft", n), content=text("held", n), **of)
        NOTES.insert(tx, replace(note, label=label))
        trigger = Trigger(
            id=TriggerId(new_id("trigger")),
            type="on_event",
            action="wake_agent",
            config={"event_pattern": line("event", n)},
            payload={"task": line("trig", n)},
            made_by=PAYLOADS[n],
            until=tx.now + timedelta(days=3650),
            label=label,
            **about,
        )
        TRIGGERS.insert(tx, trigger)
        file_labels.put(tx, one.team.id, line("spoilt", n), b"x", label=label)
        grant = Grant(
            id=new_id("grant"),
            kind="command",
            pattern=line("grant", n),
            person_id=OWNER,
            created_at=tx.now,
            team_id=one.team.id,
            used=3,
            used_at=tx.now,
        )
        GRANTS.insert(tx, grant)


def _add_results(tx: Tx, one: NewTeam, numbers: Numbers) -> None:
    """Add ended work whose titles, results and changed files are payloads."""
    for few in groups(numbers, 6):
        about = {"title": lines("delivered", few), "result": several("summary", few)}
        doubts = (Doubt(kind="file", words=lines("unsafe", few)),)
        node = _add_node(tx, one, **about, doubts=doubts, ended_at=tx.now, started_at=tx.now)
        for n in few:
            change = FolderChange(
                id=new_id("change"),
                team_id=one.team.id,
                folder="project",
                path=line("changed", n),
                created_at=tx.now,
                node_id=node.id,
                after="file 0644 0",
            )
            FOLDER_CHANGES.insert(tx, change)


def _write_files(folder: Path, numbers: Numbers) -> None:
    """Write files whose names and contents are payloads."""
    named, notes = folder / "named", folder / "memory" / "knowledge"
    named.mkdir(parents=True)
    notes.mkdir(parents=True, exist_ok=True)
    for n in numbers:
        name = line("file", n).replace("/", "\u2215").replace("\0", "")
        (named / name.encode()[:200].decode(errors="ignore")).write_text("x")
    (notes / "note.md").write_text(whole("note", numbers))
    cells = {n: PAYLOADS[n].replace('"', '""') for n in numbers}
    elements = " ".join(every("svg", numbers))
    contents = {
        "all.md": whole("md", EVERY),
        "refs.md": "\n\n".join(text("refs", n) for n in REFERENCES),
        "all.html": "\n".join(every("html", EVERY)),
        "all.svg": f"<svg xmlns='http://www.w3.org/2000/svg'>{elements}</svg>",
        "all.csv": "".join(f'{mark("csv", n)},"{words}"\n' for n, words in cells.items()),
        "all.py": "\n".join(every("py", numbers)),
        "all.json": json.dumps({line("json", n): PAYLOADS[n] for n in EVERY}),
        "all.txt": "\n".join(every("txt", numbers)),
    }
    assert contents.keys() == FILES.keys()
    for name, content in contents.items():
        (folder / name).write_text(content)
