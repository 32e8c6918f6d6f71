"""Aftermath: what a run has left, and which invariants it violates."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.messages import NEEDS_ANSWER, Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.work import NodeStatus, WaitingOn, WorkNode
from agiraph.core.store import dependencies, teams, threads
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.stages import STAGES
from agiraph.core.store.teams import AGENTS, PERSONS
from agiraph.core.store.tx import Tx
from agiraph.core.store.waits import WAITS
from agiraph.testing import World
from tests.habits.conversations import stable
from tests.habits.lapses import FORGED_LINE, Lapse

GoesOn = Callable[[str], bool]
_NO_WORDS = ("", "approve", "deny")
ROUNDS = 6
"""How often the person answers what is open: each answer may lead to another question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Everything that a run has left in the database."""

    nodes: tuple[WorkNode, ...]
    messages: tuple[Message, ...]
    agents: tuple[Agent, ...]
    people: frozenset[str]
    waits: dict[str, list[WaitingOn]]
    """What each node waits for."""
    needs: dict[str, list[str]]
    """The nodes that a pending node needs."""
    stages: dict[str, Stage]
    heard: str
    """All that was said in any thread of work."""
    is_stopped: bool
    """Whether a person stopped a team, which cancels its work."""
    broken: tuple[str, ...] = ()
    """Events that did not match their schema."""

    @property
    def tasks(self) -> Counter[str]:
        return Counter(stable(n.task) for n in self.nodes if n.lane == "work")

    @property
    def cancelled(self) -> Counter[str]:
        gone = (n for n in self.nodes if n.status is NodeStatus.CANCELLED and n.lane == "work")
        newest = {n.team_id: n.id for n in self.nodes if n.is_goal}
        # A goal that a person replaced by another one is cancelled.
        kept = (n for n in gone if not n.is_goal or newest[n.team_id] == n.id)
        return Counter(stable(n.task) for n in kept)

    @property
    def questions(self) -> Counter[str]:
        asked = (m for m in self.messages if m.kind in NEEDS_ANSWER and m.recipient in self.people)
        return Counter(stable(m.text) for m in asked)

    @property
    def unheard(self) -> Counter[str]:
        # A decision without words is recorded by its name.
        said = (m for m in self.messages if m.sender == OWNER and m.text not in _NO_WORDS)
        # What to do with a late answer is chosen from options; the runtime alone hears the choice.
        late = {m.id for m in self.messages if m.topic == "late_answer"}
        said = (m for m in said if m.in_reply_to not in late)
        # Words with a decision on a call whose work has ended are kept for the agent's next work.
        kept = "\n".join(m.text for m in self.messages if m.kind == "notice" and not m.seen_at)
        return Counter(stable(m.text) for m in said if m.text not in self.heard + kept)


def read(tx: Tx) -> Left:
    nodes = [n for team in teams.every(tx) for n in NODES.select(tx, "team_id = :t", t=team.id)]
    waits: dict[str, list[WaitingOn]] = {}
    for wait in WAITS.select(tx, "true"):
        waits.setdefault(wait.node_id, []).append(wait.waiting_on)
    turns = [
        turn.text
        for node in nodes
        if node.thread_id is not None and node.lane == "work"
        for turn in threads.turns(tx, ThreadId(node.thread_id))
        if turn.role in ("user", "tool", "system")
    ]
    return Left(
        nodes=tuple(nodes),
        messages=tuple(MESSAGES.select(tx, "true order by id")),
        agents=tuple(AGENTS.select(tx, "true")),
        people=frozenset(person.id for person in PERSONS.select(tx, "true")),
        waits=waits,
        needs={
            n.id: [str(needed.id) for needed in dependencies.needs(tx, n.id)]
            for n in nodes
            if n.status is NodeStatus.PENDING
        },
        stages={stage.id: stage for stage in STAGES.select(tx, "true")},
        heard="\n".join(turns),
        is_stopped=any(team.status == "stopped" for team in teams.every(tx)),
    )


async def play_the_person(world: World) -> list[str]:
    """Answer what is open until nothing can run; return the violations seen on the way."""
    found: list[str] = []
    asked: list[Message] = []
    for number in range(ROUNDS):
        await world.settle()
        left: Left = await world.store.read(read)
        found += stuck(left)
        asked = [m for m in left.messages if _is_open(left, m)]
        if found or not asked:
            return found
        for message in asked:
            decision = "approve" if message.kind == "approval" else None
            # What becomes of a late answer is chosen, not said.
            is_late = message.topic == "late_answer"
            said = message.options[0] if is_late else f"Decide yourself ({number})."
            await world.answer(message, said, decision=decision)
    return [f"the person is still asked after {ROUNDS} rounds: {asked[-1].text!r}"]


def _is_open(left: Left, message: Message) -> bool:
    is_question = message.kind in NEEDS_ANSWER and message.recipient in left.people
    return is_question and message.answered_at is None


def violations(left: Left, before: Left, lapse: Lapse, *, is_wanted: bool) -> Iterator[str]:
    """Compare what a run with a lapse has left with a run without it.

    `is_wanted`: whether the script wanted its workers to the end; one that improvises may end.
    """
    yield from (f"an event is not valid: {event}" for event in left.broken)
    for node in left.nodes:
        said = [words for words in lapse.unwanted if words in (node.result or "")]
        if said and _must_not_say(node, lapse):
            yield f"{_named(node)} completed with {said[0]!r} as its result"
        if str(node.stop_reason) == "broken":
            yield f"{_named(node)} broke: {node.result}"
    if is_wanted and not before.is_stopped:
        more = left.cancelled - before.cancelled
        yield from (f"the wanted work {task!r} was cancelled" for task in more)
        again = left.tasks - before.tasks
        yield from (f"{task!r} was given {n} times more" for task, n in again.items() if n > 1)
    for text, times in left.questions.items():
        if times > max(1, before.questions[text]):
            yield f"the person was asked {times} times: {text!r}"
    if FORGED_LINE in left.heard.splitlines():
        yield f"{FORGED_LINE!r} stands in a thread as if the human had said it"
    yield from _false_words(left, lapse)
    yield from _false_acts(left)
    yield from (f"nobody heard {text!r}" for text in left.unheard - before.unheard)
    yield from stuck(left)


def _false_words(left: Left, lapse: Lapse) -> Iterator[str]:
    """Yield what a person was told although it is not so, and work that nobody asked for."""
    told = [m for m in left.messages if m.recipient in left.people and m.sender not in left.people]
    for message in told:
        yield from (f"the person was told {w!r}" for w in lapse.untold if w in message.text)
    answered = {m.in_reply_to for m in told}
    # Messages that share a reply are answered by one message, to the last of them.
    last = {m.reply_id: m for m in left.messages if m.reply_id is not None}
    yield from (f"nobody answered {m.text!r}" for m in last.values() if m.id not in answered)


def _false_acts(left: Left) -> Iterator[str]:
    """Yield what stands under a reply and was not done, and work that no reply states."""
    by_id = {str(node.id): node for node in left.nodes}
    said = {str(message.id): message for message in left.messages}
    answers = {(m.in_reply_to, m.text) for m in left.messages}
    acts = [act for message in left.messages for act in message.acts]
    for act in acts:
        match act.kind:
            case "started":
                is_so = act.about in by_id
            case "stopped":
                node = by_id[act.about]
                is_so = node.status.is_final or node.cancel_requested
            case "answered":
                is_so = said[act.about].answered_at is not None and (
                    (act.about, act.words) in answers
                )
            case _:
                is_so = True
        if not is_so:
            yield f"a reply states what was not done: {act}"
    stated = {act.about for act in acts if act.kind == "started"}
    made = {m.node_id for m in left.messages if m.sender in left.people and m.kind == "message"}
    yield from (f"no reply states the new work {i!r}" for i in made - stated if i is not None)


def _must_not_say(node: WorkNode, lapse: Lapse) -> bool:
    """Whether a completed node should not have the words of this lapse as its result.

    An ending call may say anything, right or wrong, where an answer is all that was asked for.
    """
    if (
        node.lane != "work"
        or node.status is not NodeStatus.COMPLETED
        or node.budget.first_turns == 1
    ):
        return False
    takes_answers = "answer" in node.acceptance
    is_side_work = node.parent_id is None and not node.is_goal
    return not lapse.is_ending or not (takes_answers or is_side_work)


def _named(node: WorkNode) -> str:
    return (
        f"{node.title or stable(node.task)[:40]!r} ({node.id}, {node.status}, {node.stop_reason})"
    )


def stuck(left: Left) -> Iterator[str]:
    """Yield the nodes that neither ended nor wait for anything that can come."""
    by_id = {str(node.id): node for node in left.nodes}
    for node in left.nodes:
        if not node.status.is_final and not _can_go_on(left, by_id, node, frozenset()):
            on = ", ".join(str(w) for w in left.waits.get(node.id, ())) or "nothing"
            yield f"{_named(node)} is stuck: it waits for {on} ({node.waiting_reason})"


def _can_go_on(
    left: Left, by_id: dict[str, WorkNode], node: WorkNode, seen: frozenset[str]
) -> bool:
    """Whether something can still end this node's wait: a person, a time, or work that goes on."""
    if node.id in seen or node.status is NodeStatus.RUNNING:
        return False  # a circle; or a run that nobody runs
    seen = seen | {str(node.id)}

    def goes_on(other: str) -> bool:
        found = by_id[other]
        return not found.status.is_final and _can_go_on(left, by_id, found, seen)

    match node.status:
        case NodeStatus.PENDING:
            needed = left.needs.get(node.id, [])
            parent = [] if node.parent_id is None else [str(node.parent_id)]
            return any(goes_on(one) for one in (*needed, *parent))
        case NodeStatus.ASSIGNED:
            busy = [
                str(other.id)
                for other in left.nodes
                if other.assignee_id == node.assignee_id
                and other.lane == node.lane
                and other.status is NodeStatus.WAITING
            ]
            return any(goes_on(one) for one in busy)
        case _:
            return any(_can_come(left, on, goes_on) for on in left.waits.get(node.id, ()))


def _may_answer(left: Left, question: Message, goes_on: GoesOn) -> bool:
    """Whether the teammate who was asked has work in which it can answer."""
    theirs = [n for n in left.nodes if n.assignee_id == question.recipient]
    return any(goes_on(str(node.id)) for node in theirs)


def _can_come(left: Left, on: WaitingOn, goes_on: GoesOn) -> bool:
    match on.kind:
        case "answer" | "approval" | "reply":
            asked = [m for m in left.messages if m.id == on.id and m.answered_at is None]
            return any(m.recipient in left.people or _may_answer(left, m, goes_on) for m in asked)
        case "time":
            return True
        case "node":
            return goes_on(on.id)
        case _:
            members = [str(n.id) for n in left.nodes if n.stage_id == on.id]
            # Its time limit does not count: a stage that only the clock ends was stuck before.
            return any(goes_on(member) for member in members)
