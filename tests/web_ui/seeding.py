"""Seeding: homes with large amounts of data, inserted directly as rows."""

from dataclasses import dataclass
from pathlib import Path

from agiraph.core.domain.agents import Agent, Limits
from agiraph.core.domain.chat import Lease, Thread, ToolCall
from agiraph.core.domain.events.work import (
    CallPreview,
    NodeAssigned,
    NodeCheckpoint,
    NodeCompleted,
    NodeCreated,
    ToolResult,
    TurnAdded,
)
from agiraph.core.domain.ids import AgentId, MessageId, NodeId, StageId, TeamId, ThreadId, new_id
from agiraph.core.domain.messages import Draft, MessageKind
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.work import NodeStatus, Usage, WorkNode
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store import dependencies, events, messages, spend, threads
from agiraph.core.store import teams as team_rows
from agiraph.core.store.nodes import NODES
from agiraph.core.store.stages import STAGES
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx
from agiraph.testing import World

MODEL = "openai/test"
WORDS = (
    "Measured again with warm caches: **{n} ms** against 41 ms before. The second column of"
    " `report-{n}.csv` was read as text, which is why the first run looked slower.\n\n"
    "- polars reads it in one pass\n- pandas needs two, and twice the memory\n\n"
    "```python\nframe = scan('report-{n}.csv').select('price', 'day')\nprint(frame.head())\n```\n"
)
ROUND_EVENTS = 8
"""The number of events in one round of the long conversation."""


@dataclass(frozen=True, slots=True)
class Long:
    """A team with a very long conversation and thread."""

    team: TeamId
    agent: AgentId
    thread: ThreadId


@dataclass(frozen=True, slots=True)
class Wide:
    """A team with a very large board."""

    team: TeamId
    agents: tuple[AgentId, ...]
    nodes: tuple[NodeId, ...]


async def long_team(path: Path, *, event_count: int = 10_000) -> Long:
    """Create a team with a conversation of this many events, and its thread."""
    async with World(path, easy_endings=True) as world:
        founded = await world.found("Compare ways to read CSV", name="Long", model=MODEL,
                                    start=False)  # fmt: skip
        agent = founded.coordinator
        opened = await world.store.write(_add_finished_node, agent, "Read every report")
        for start in range(0, event_count // ROUND_EVENTS, 25):
            numbers = range(start, min(start + 25, event_count // ROUND_EVENTS))
            await world.store.write(_add_conversation, agent, opened, numbers)
            world.clock.advance(minutes=4)
        head = await world.store.read(events.head, founded.team.id)
        assert head >= event_count, head
    return Long(founded.team.id, agent.id, opened.id)


def _add_finished_node(tx: Tx, agent: Agent, title: str) -> Thread:
    """Add a completed node with its thread."""
    node = WorkNode(
        id=NodeId(new_id("node")),
        team_id=agent.team_id,
        task=title,
        title=title,
        source="user",
        creator_id=OWNER,
        status=NodeStatus.COMPLETED,
        assignee_id=agent.id,
        created_at=tx.now,
        started_at=tx.now,
        ended_at=tx.now,
        result="All of them are read.",
    )
    thread = Thread(
        id=ThreadId(new_id("t")),
        team_id=agent.team_id,
        agent_id=agent.id,
        node_id=node.id,
        created_at=tx.now,
        closed_at=tx.now,
        harvested_at=tx.now,
    )
    NODES.insert(tx, node)
    THREADS.insert(tx, thread)
    NODES.update(tx, node.id, thread_id=thread.id)
    _emit_created(tx, node)
    return thread


def _emit_created(tx: Tx, node: WorkNode) -> None:
    tx.emit(
        node.team_id,
        NodeCreated(
            node_id=node.id,
            title=node.title,
            parent_id=node.parent_id,
            creator_id=node.creator_id,
            lane=node.lane,
            needs=[],
        ),
    )
    if node.assignee_id is not None:
        ids = {"node_id": node.id, "agent_id": node.assignee_id}
        tx.emit(node.team_id, NodeAssigned(**ids))


def _add_conversation(tx: Tx, agent: Agent, thread: Thread, numbers: range) -> None:
    """Add rounds of eight events: two replies with a call each, a remark, a question, an answer."""
    assert thread.node_id is not None
    page = threads.append_point(tx, thread.id)
    for n in numbers:
        for part in range(2):
            path = f"report-{n}.csv"
            call = ToolCall(id=f"call_{n}_{part}", name="read_file", arguments={"path": path})
            text = f"Row {part} of {path}: 41, 12, 7.\n" * 5
            page, said = threads.append(
                tx, page, node_id=thread.node_id, role="assistant", text="", calls=(call,),
                model=MODEL, usage=Usage(input_tokens=900, output_tokens=40, usd=0.001),
            )  # fmt: skip
            _emit_turn(tx, thread, said.seq, "", [call])
            page, _ = threads.append(
                tx, page, node_id=thread.node_id, role="tool", ref=call.id, text=text
            )
            about = {"node_id": thread.node_id, "call_id": call.id, "tool": call.name}
            tx.emit(thread.team_id, ToolResult(**about, failed=n % 9 == 0, text=text[:400]))
        _emit_turn(tx, thread, page.head, f"{n} of them are read; the next is larger.", [])
        _send(tx, agent, OWNER, agent.id, f"How far is {n}?")
        _send(tx, agent, agent.id, OWNER, WORDS.format(n=n))
        tx.emit(agent.team_id, NodeCheckpoint(node_id=thread.node_id, summary=f"{n} read"))


def _send(tx: Tx, agent: Agent, sender: str, recipient: str, text: str) -> None:
    said = bus.send(
        tx,
        Draft(
            team_id=agent.team_id,
            sender=sender,
            recipient=recipient,
            text=text,
        ),
        sets_to_work=False,
    )
    messages.mark_seen(tx, [said.id])  # an unseen message would become work


def _emit_turn(tx: Tx, thread: Thread, seq: int, text: str, calls: list[ToolCall]) -> None:
    assert thread.node_id is not None
    tx.emit(
        thread.team_id,
        TurnAdded(
            node_id=thread.node_id,
            thread_id=thread.id,
            agent_id=thread.agent_id,
            seq=seq,
            text=text,
            calls=[CallPreview(id=c.id, name=c.name, arguments=c.arguments) for c in calls],
            tokens=940,
            usd=0.001,
        ),
    )


async def many_teams(path: Path, *, count: int, members: int) -> list[TeamId]:
    """Create this many teams that do nothing, with this many members each; oldest first.

    Every fourth is completed. The names are "team 0" and so on, each a minute after the one before.
    """
    made: list[TeamId] = []
    async with World(path, easy_endings=True) as world:
        for number in range(count):
            founded = await world.store.write(_add_team, number, members)
            made.append(founded)
            world.clock.advance(minutes=1)
    return made


def _add_team(tx: Tx, number: int, members: int) -> TeamId:
    founded = teams.create(
        tx, owner_id=OWNER, goal=f"Watch shelf {number}", name=f"team {number}", model=MODEL,
        start=False, heartbeat=None,
    )  # fmt: skip
    for n in range(members - 1):
        roster.hire(tx, founded.team.id, name=f"reader-{n}", role="reader", model=MODEL)
    if number % 4 == 0:
        TEAMS.update(tx, founded.team.id, status="completed")
    return founded.team.id


async def full_inbox(path: Path, *, teams_count: int = 60, items: int = 200) -> list[TeamId]:
    """Create this many teams of three members, and as many items in the person's inbox: results of
    some hundred words, and for each third team a question. Return the teams, oldest first."""
    made = await many_teams(path, count=teams_count, members=3)
    async with World(path, easy_endings=True) as world:
        for n in range(items):
            await world.store.write(add_item, made[n % len(made)], n)
            world.clock.advance(minutes=1)
        for n, team in enumerate(made[::3]):
            await world.store.write(add_item, team, n, kind="question")
            world.clock.advance(minutes=1)
    return made


def add_item(tx: Tx, team: TeamId, number: int, *, kind: MessageKind = "result") -> MessageId:
    """Put a result, or a question, about ended work into the person's inbox."""
    agent = team_rows.coordinator(tx, team)
    thread = _add_finished_node(tx, agent, f"Look through shelf {number}")
    words = f"Which of the boxes on shelf {number} may go?"
    said = bus.send(
        tx,
        Draft(
            team_id=team, sender=agent.id, recipient=OWNER, kind=kind, node_id=thread.node_id,
            title=f"Shelf {number} is done" if kind == "result" else "",
            text=WORDS.format(n=number) * 3 if kind == "result" else words,
        ),
    )  # fmt: skip
    return said.id


async def wide_team(path: Path, *, pieces: int = 500, stages: int = 5) -> Wide:
    """Create a paused team with a board of this many nodes in this many stages."""
    async with World(path, easy_endings=True) as world:
        limits = Limits(agents=16, nodes=10 * pieces)
        founded = await world.found(
            "Survey everything", name="Wide", model=MODEL, start=False, limits=limits
        )
        made = await world.store.write(_fill, founded, pieces, stages)
    return made


def _fill(tx: Tx, founded: teams.NewTeam, pieces: int, stages: int) -> Wide:
    team = founded.team.id
    TEAMS.update(tx, team, status="paused")  # a paused team does no work
    hired = [
        roster.hire(tx, team, name=f"worker-{n}", role="worker", model=MODEL) for n in range(15)
    ]
    goal = add_node(tx, team, 0, assignee=founded.coordinator.id, status=NodeStatus.RUNNING)
    opened = [
        Stage(id=StageId(new_id("stage")), team_id=team, node_id=goal, name=f"stage {n + 1}",
              created_at=tx.now)
        for n in range(stages)
    ]  # fmt: skip
    for stage in opened:
        STAGES.insert(tx, stage)
    made: list[NodeId] = [goal]
    before: list[NodeId] = []
    each = (pieces - 1) // stages
    for place, stage in enumerate(opened):
        count = each if place < stages - 1 else pieces - len(made)
        here = [
            add_node(
                tx, team, len(made) + n, parent=goal, stage=stage.id,
                assignee=hired[n % len(hired)].id, needs=before[n : n + 2],
                status=_status_of(place, n, stages, len(hired)),
            )
            for n in range(count)
        ]  # fmt: skip
        made += here
        before = here
    return Wide(team, tuple(a.id for a in hired), tuple(made))


def _status_of(stage: int, place: int, stages: int, hands: int) -> NodeStatus:
    """Return completed for early stages, running for some of the middle one, else pending."""
    if stage < stages // 2:
        return NodeStatus.FAILED if place % 17 == 0 else NodeStatus.COMPLETED
    if stage == stages // 2 and place < hands:
        return NodeStatus.RUNNING
    return NodeStatus.PENDING


def add_node(
    tx: Tx,
    team: TeamId,
    number: int,
    *,
    parent: NodeId | None = None,
    stage: StageId | None = None,
    assignee: AgentId | None = None,
    needs: list[NodeId] | None = None,
    status: NodeStatus = NodeStatus.PENDING,
    title: str = "",
) -> NodeId:
    """Add a node with this status."""
    begun = status is not NodeStatus.PENDING
    node = WorkNode(
        id=NodeId(new_id("node")),
        team_id=team,
        task=f"Look through part {number} and say what is in it.",
        title=title or f"Look through part {number}",
        source="delegation" if parent else "user",
        creator_id=OWNER,
        status=status,
        assignee_id=assignee,
        parent_id=parent,
        stage_id=stage,
        depth=1 if parent else 0,
        created_at=tx.now,
        started_at=tx.now if begun else None,
        ended_at=tx.now if status.is_final else None,
        result=f"Part {number} holds little." if status is NodeStatus.COMPLETED else None,
    )
    NODES.insert(tx, node)
    dependencies.add(tx, node.id, needs or [])
    _emit_created(tx, node)
    return node.id


async def translation_team(path: Path, *, pages: int = 180) -> Wide:
    """Create a paused team with many alike nodes below one parent, and some that are not alike."""
    async with World(path, easy_endings=True) as world:
        founded = await world.found(
            "Translate the handbook", name="Book", model=MODEL, start=False,
            limits=Limits(agents=16, nodes=1000),
        )  # fmt: skip
        made = await world.store.write(_fill_book, founded, pages)
    return made


CHAPTERS = (
    "Agree on a glossary", "Read the style guide", "Choose a tone", "Split the manuscript",
    "Ask about names", "Check the licence", "Draw the maps again", "Set the tables",
    "Write the preface", "Proofread everything", "Number the figures", "Build the index",
    "Make the cover", "Typeset the book", "Check the links", "Print one copy", "Read it aloud",
    "Thank the authors", "Publish the book",
)  # fmt: skip
"""The tasks of the book that are not alike. With the goal and the parent of the pages, they make a
board of 201 tasks."""


def _fill_book(tx: Tx, founded: teams.NewTeam, pages: int) -> Wide:
    team = founded.team.id
    TEAMS.update(tx, team, status="paused")
    hired = [roster.hire(tx, team, name=f"translator-{n}", role="worker", model=MODEL)
             for n in range(6)]  # fmt: skip
    done, running = NodeStatus.COMPLETED, NodeStatus.RUNNING
    goal = add_node(tx, team, 0, assignee=founded.coordinator.id, status=running,
                    title="Translate the handbook")  # fmt: skip
    whole = add_node(tx, team, 0, parent=goal, assignee=hired[0].id, status=running,
                     title="Translate all pages")  # fmt: skip
    made = [goal, whole]
    for n in range(pages):
        status = NodeStatus.FAILED if n == 17 else done if n < 120 else NodeStatus.PENDING
        made.append(
            add_node(tx, team, n, parent=whole, assignee=hired[n % 6].id, status=status,
                     title=f"Translate page {n + 1}")
        )  # fmt: skip
    before: list[NodeId] = [whole]
    for n, title in enumerate(CHAPTERS):
        status = done if n < 6 else NodeStatus.PENDING
        node = add_node(tx, team, n, parent=goal, assignee=hired[n % 6].id, status=status,
                        title=title, needs=before if n > 6 else [])  # fmt: skip
        made.append(node)
        if n > 6 and n % 4 == 0:
            before = [node]
    return Wide(team, tuple(a.id for a in hired), tuple(made))


LEADS = {
    "research": ("Ask the customers", "Read the rivals", "Measure the market", "Find suppliers"),
    "build": ("Design the machine", "Write the software", "Test everything"),
    "launch": ("Train the sellers", "Tell the papers", "Open the shops"),
}
"""The leads of each stage of a deep team."""
PARTS = ("Plan it", "Collect what is known", "Do the work", "Check the work", "Write it down")
UNDER_WAY = (NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.RUNNING)
PIECES = ("Look around", "Ask an expert", "Make a draft", "Compare drafts", "Sum up")


async def deep_team(path: Path, *, pieces: int = 5) -> Wide:
    """Create a paused team of four levels and three stages: a goal, 10 leads, 50 parts, and this
    many pieces below each part. The first stage is done, the second is under way."""
    async with World(path, easy_endings=True) as world:
        founded = await world.found(
            "Bring the new machine to market", name="Deep", model=MODEL, start=False,
            limits=Limits(agents=16, nodes=1000),
        )  # fmt: skip
        made = await world.store.write(_fill_deep, founded, pieces)
    return made


def _fill_deep(tx: Tx, founded: teams.NewTeam, pieces: int) -> Wide:
    team = founded.team.id
    TEAMS.update(tx, team, status="paused")
    names = ["ada", "ben", "cleo", "dora", "emil", "finn", "gina", "hugo", "ines", "jon"]
    hired = [roster.hire(tx, team, name=name, role="lead", model=MODEL) for name in names]
    done, waiting, pending = NodeStatus.COMPLETED, NodeStatus.WAITING, NodeStatus.PENDING
    goal = add_node(tx, team, 0, assignee=founded.coordinator.id, status=waiting,
                    title="Bring the new machine to market")  # fmt: skip
    made = [goal]
    states = {"research": done, "build": waiting, "launch": pending}
    needs: list[NodeId] = []
    others = iter(hired)
    for name, leads in LEADS.items():
        stage = Stage(id=StageId(new_id("stage")), team_id=team, node_id=goal, name=name,
                      created_at=tx.now)  # fmt: skip
        STAGES.insert(tx, stage)
        opened: list[NodeId] = []
        for title in leads:
            who = next(others).id
            lead = add_node(tx, team, len(made), parent=goal, stage=stage.id, assignee=who,
                            needs=needs, status=states[name], title=title)  # fmt: skip
            opened.append(lead)
            made += [lead, *_add_parts(tx, team, lead, who, states[name], pieces)]
        needs = opened
    return Wide(team, tuple(a.id for a in hired), tuple(made))


def _add_parts(
    tx: Tx, team: TeamId, lead: NodeId, who: AgentId, status: NodeStatus, pieces: int
) -> list[NodeId]:
    """Add the parts of a lead with their pieces; of a lead that waits, the third is under way."""
    done, waiting, pending = NodeStatus.COMPLETED, NodeStatus.WAITING, NodeStatus.PENDING
    of_parts = [done, done, waiting, pending, pending] if status is waiting else [status] * 5
    made: list[NodeId] = []
    for place, (title, own) in enumerate(zip(PARTS, of_parts, strict=True)):
        part = add_node(tx, team, place, parent=lead, assignee=who, status=own, title=title,
                        needs=[made[-1 - pieces]] if made else [])  # fmt: skip
        made.append(part)
        for n in range(pieces):
            is_under_way = own is waiting and n < len(UNDER_WAY)
            state = UNDER_WAY[n] if is_under_way else pending if own is waiting else own
            title = PIECES[n % len(PIECES)]
            piece = add_node(tx, team, n, parent=part, assignee=who, status=state, title=title)
            if state is not pending:
                _pay(tx, team, piece, who)
            made.append(piece)
    return made


def complete_node(tx: Tx, team: TeamId, node: NodeId) -> None:
    """End a node as its agent would, with the event that pages follow."""
    NODES.update(tx, node, status=NodeStatus.COMPLETED, started_at=tx.now, ended_at=tx.now)
    tx.emit(team, NodeCompleted(node_id=node, reason=None, result="Done."))


def _pay(tx: Tx, team: TeamId, node: NodeId, agent: AgentId) -> None:
    """Book one call of a cent for a node."""
    lease = Lease(team_id=team, agent_id=agent, node_id=node, thread_id=ThreadId(""), epoch=0)
    usage = Usage(input_tokens=900, output_tokens=40, usd=0.01)
    spend.settle(tx, lease, purpose="work", model=MODEL, usage=usage)
