"""Dialogue: a person's talk with a team, played from outside: what they read, and what was done.

The model is scripted on a real wire; all else is the product. Each thing that the person does is a
step: `printed` is what they read then, `facts` is how the rows differ, whatever any reply says.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from agiraph.api.views import InboxItem
from agiraph.cli.asking import deadline
from agiraph.cli.chat import ACTS_SHOWN
from agiraph.cli.inbox import ending_text
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.moments import as_text
from agiraph.core.domain.work import NodeStatus, WorkNode, told_person
from agiraph.core.home import stored_keys
from agiraph.testing import Call, call, says
from agiraph.testing.script import Says, Seen
from tests.runtime.waiting import Gate, until
from tests.scenarios.person import Person, person

Line = Says | Callable[[Seen], Says]
Fact = tuple[str, ...]
"""One thing that was done, from the rows: what, to whom or what, with which words."""
ACCEPTS: Says = says(call("give_verdict", verdict="accept"))
NOTHING_KEPT: Says = says('{"insights": [], "score": 0.1, "title": "", "summary": "", "text": ""}')
NOTHING_TO_DO: Says = says(call("finish", nothing_to_do=True))
NOT_MADE = "Not made: a message came first"
CHAT: Call = call("no_work_needed")
ENDS = {
    NodeStatus.COMPLETED: "result",
    NodeStatus.PARTIAL: "partial result",
    NodeStatus.FAILED: "failure",
}


class Hold(Gate):
    """Holds a reply of the model back; `is_awaited` while one is."""

    is_awaited: bool = False

    async def wait(self) -> bool:
        self.is_awaited = not self.is_set()
        await super().wait()
        self.is_awaited = False
        return True


@dataclass(slots=True)
class Cast:
    """The model of all agents: speaks these lines in order, those of each piece of work apart."""

    replies: deque[Line] = field(default_factory=deque[Line])
    works: dict[str, deque[Line | Hold]] = field(default_factory=dict[str, deque[Line | Hold]])
    """Lines by words that stand in the task. A hold keeps the next line back; the last line is
    repeated."""
    heard: list[str] = field(default_factory=list[str])
    """All that work was shown."""

    async def play(self, seen: Seen) -> Says:
        if "give_verdict" in seen.tools:
            return _reviews(seen)
        if "no_work_needed" in seen.tools:
            return _spoken(self.replies.popleft(), seen)
        if not seen.tools:
            return NOTHING_KEPT
        task, *later = [message.text for message in seen.messages if message.role != "assistant"]
        self.heard += later
        if "[Runtime] A scheduled check" in task:
            return NOTHING_TO_DO
        if again := _repeated(seen):
            return says(*again)
        at = {task.find(words): words for words in self.works if words in task}
        assert at, f"no lines for {task!r}"
        lines = self.works[at[min(at)]]
        while isinstance(hold := lines[0], Hold):
            await hold.wait()
            lines.popleft()
        line = lines[0] if len(lines) == 1 else lines.popleft()
        assert not isinstance(line, Hold)
        return _spoken(line, seen)


def _repeated(seen: Seen) -> list[Call]:
    """Return the calls that were not made because a message came first, to be made again."""
    places = [place for place, each in enumerate(seen.messages) if each.role == "assistant"]
    if not places or not any(NOT_MADE in each.text for each in seen.messages[places[-1] :]):
        return []
    return [Call(each.name, each.arguments) for each in seen.messages[places[-1]].calls]


def _reviews(seen: Seen) -> Says:
    """Open each file that is delivered, then accept."""
    told = seen.messages[0].text
    files = re.findall(r"(\S+\.md) \(\d+ bytes\)", told)
    [folder] = re.findall(r"They are in (\S+) for read_file", told)
    opens = [call("read_file", path=f"{folder}/{name}") for name in files]
    return says(*opens) if len(seen.messages) == 1 else ACCEPTS


def _spoken(line: Line, seen: Seen) -> Says:
    return line if isinstance(line, Says) else line(seen)


class State(NamedTuple):
    """What the rows hold at a moment, by id."""

    nodes: dict[str, tuple[str, WorkNode]]
    """Work, with its title for people."""
    said: dict[str, tuple[str, Message]]
    """The person's messages, each with the name of the agent that got it."""
    questions: dict[str, tuple[str, bool]]
    """Questions to the person, and whether each is open."""
    triggers: dict[str, tuple[str, ...]]
    """What each active reminder is: its kind, when it fires next, what it is about."""
    known: dict[str, str]
    """Memories and insights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What the person did, what they read then, and what was done in truth."""

    kind: str
    printed: list[str]
    facts: list[Fact]


@dataclass(slots=True)
class Dialogue(Person):
    """A person who talks to one team; `steps` has all that they did."""

    cast: Cast = field(default_factory=Cast)
    steps: list[Step] = field(default_factory=list[Step])
    asked: list[str] = field(default_factory=list[str])
    """The ids of the questions to the person, oldest first."""
    _before: State = field(default_factory=lambda: State({}, {}, {}, {}, {}))
    _from: int = 0
    """Where in the transcript the step begins."""

    def work(self, words: str, *lines: Line | Hold) -> None:
        """Give the lines of the work with these words in its task."""
        self.cast.works[words] = deque(lines)

    def hold_next(self, words: str, hold: Hold) -> None:
        """Hold the next line of this work back."""
        self.cast.works[words].appendleft(hold)

    # What the person does

    async def founds(self, goal: str, *, reaches: Hold | None = None, **more: Any) -> None:
        waits = "" if more.get("start", True) else " (It does nothing before you write.)"
        self._note(f"You make a new team: {goal}{waits}")
        self._note(f"[The chat opens: {ACTS_SHOWN}]")
        made = await self._post("/teams", {"goal": goal, "model": "openai/test", **more})
        self.team, self.agent = made["id"], made["coordinator_id"]
        await self._ends_step("founds", reaches)

    async def says(self, text: str, *replies: Line, reaches: Hold | None = None) -> None:
        """Send a message to the coordinator, which replies with these lines."""
        self.cast.replies.extend(replies)
        sent = await self._post(f"/agents/{self.agent}/send", {"message": text})

        async def is_answered() -> bool:
            told = await self.get(f"/agents/{self.agent}/conversation")
            return any(m["in_reply_to"] == sent["id"] and m["kind"] == "message" for m in told)

        async with asyncio.timeout(30):
            await until(self.served.world, is_answered)
        told = await self.get(f"/agents/{self.agent}/conversation")
        # As it stands there from now on: without a secret.
        self._note("You: " + next(m["text"] for m in told if m["id"] == sent["id"]))
        await self._ends_step("says", reaches)
        assert not self.cast.replies, f"the reply did not need all its lines: {self.cast.replies}"

    async def answers(self, text: str, *, reaches: Hold | None = None) -> None:
        """Answer the card of the oldest open question."""
        item = next(item for item in await self.inbox() if item["needs_answer"])["message"]
        self._note(f"You answer on the card “{item['text']}”: {text}")
        await self._post(f"/inbox/{item['id']}/answer", {"text": text})
        await self._ends_step("answers", reaches)

    async def enters(self, name: str, secret: str) -> None:
        """Enter a secret in its form, under a name."""
        self._note(f"You enter a secret in the form, under the name {name}.")
        status, told = await self.served.ask("PUT", f"/secrets/{name}", {"value": secret})
        assert status == 204, told
        assert stored_keys.read(self.served.world.path).named == {name: secret}
        await self._ends_step("enters", None, ("secret kept", name))

    async def undoes(self, words: str, *, reaches: Hold | None = None) -> None:
        """Click *Undo* on the line under a reply that has these words."""
        for said in await self.get(f"/agents/{self.agent}/conversation"):
            for place, act in enumerate(said["acts"]):
                if words in act["text"] and not act["is_undone"]:
                    self._note(f"You click “Undo” on: {act['text']}")
                    await self._post(f"/messages/{said['id']}/acts/{place}/undo", None)
                    return await self._ends_step("undoes", reaches)
        raise AssertionError(f"nothing to undo: {words}")

    async def goes_on(self, *holds: Hold, reaches: Hold | None = None) -> None:
        """Let held work go on."""
        self._note("(Some time passes.)")
        for hold in holds:
            hold.set()
        await self._ends_step("goes on", reaches)

    async def later(self, words: str, *, reaches: Hold | None = None, **time: float) -> None:
        self._note(f"({words})")
        await self.served.world.advance(**time)
        await self._ends_step("later", reaches)

    # What they read

    async def _ends_step(self, kind: str, reaches: Hold | None, *more: Fact) -> None:
        """Wait until nothing can run, or held work is held; print what is new, keep the truth."""
        async with asyncio.timeout(30):
            if reaches is not None:
                await reaches.reached()
            elif not self._is_held():
                await self.served.world.settle()
        await self._print_news()
        now = await self._state()
        facts = [*_differences(self._before, now, self.agent), *more]
        self.steps.append(Step(kind=kind, printed=self.transcript[self._from :], facts=facts))
        self.asked = sorted(now.questions)
        self._before, self._from = now, len(self.transcript)

    def _is_held(self) -> bool:
        lines = [line for lines in self.cast.works.values() for line in lines]
        return any(
            isinstance(line, Hold) and line.is_awaited and not line.is_set() for line in lines
        )

    async def _print_news(self) -> None:
        items = {item["message"]["id"]: item for item in await self.inbox()}
        news = {key: item["message"] for key, item in items.items()}
        for agent in await self.get(f"/teams/{self.team}/agents?all=true"):
            said = await self.get(f"/agents/{agent['id']}/conversation")
            news |= {message["id"]: message for message in said}
        for message in sorted(news.values(), key=lambda m: (m["created_at"], m["seq"])):
            if message["sender"] != "human":
                self._print(message, items.get(message["id"]))

    def _print(self, message: dict[str, Any], item: dict[str, Any] | None) -> None:
        """Print a message once, and its acts whenever they are new or undone."""
        is_new = message["id"] not in self._seen
        self._seen.add(message["id"])
        lines: list[str] = []
        if is_new and item is None:
            lines.append(f"{message['sender_name']}: {message['text']}")
        elif is_new and item is not None:
            kind = ending_text(InboxItem.model_validate(item))
            title = f"“{message['title']}” " if message["title"] else ""
            lines.append(f"[Inbox] {message['sender_name']}, {kind}: {title}{message['text']}")
            lines += [f"    {place}. {each}" for place, each in enumerate(message["options"], 1)]
            if message["waits_until"] is not None:
                lines.append("    " + deadline(datetime.fromisoformat(message["waits_until"])))
        for place, act in enumerate(message["acts"]):
            key = f"{message['id']} {place} {act['is_undone']}"
            if key not in self._seen:
                lines.append(f"  → {act['text']}{' (undone)' if act['is_undone'] else ''}")
            self._seen.add(key)
        for line in lines:
            self._note(line)

    async def leaves(self) -> None:
        """Print what stands in the inbox and on the board at the end."""
        waits = [item["message"] for item in await self.inbox() if item["needs_answer"]]
        self._note("\nStill waiting for your answer:" + ("" if waits else " nothing"))
        for message in waits:
            self._note(f"  {message['sender_name']}: {message['text']}")
        board = await self.get(f"/teams/{self.team}/board")
        self._note("The board:" + ("" if board else " no tasks"))
        for node in board:
            doubts = ", with doubts" if node["doubts"] else ""
            waits_for = (
                f" ({told_person(node['waiting_reason'])})" if node["waiting_reason"] else ""
            )
            who = node["assignee"] or "nobody yet"
            self._note(
                f"  {'  ' * node['depth']}{node['title']} · {who} · {node['status']}{doubts}"
                f"{waits_for}"
            )

    async def _state(self) -> State:
        world, team = self.served.world, TeamId(self.team)
        said: dict[str, tuple[str, Message]] = {}
        known: dict[str, str] = {}
        for agent in await world.members(team):
            for message in await world.conversation(agent):
                if message.sender == OWNER:
                    said[message.id] = (agent.name, message)
            for kind in ("memories", "insights"):
                for each in await self.get(f"/agents/{agent.id}/{kind}"):
                    known[each["id"]] = each["content"]
        questions = {
            item["message"]["id"]: (item["message"]["text"], item["needs_answer"])
            for item in await self.inbox()
            if item["message"]["kind"] == "question"
        }
        triggers: dict[str, tuple[str, ...]] = {
            one.id: (
                "reminder" if one.type == "at_time" else "trigger",
                as_text(one.due_at, one.zone),
                str(one.payload["task"]),
            )
            for one in await world.triggers(team)
            if one.status == "active" and one.promised_to and one.due_at
        }
        titles = {node["id"]: node["title"] for node in await self.get(f"/teams/{self.team}/board")}
        board = await world.board(team)
        nodes = {str(node.id): (str(titles[node.id]), node) for node in board}
        return State(nodes, said, questions, triggers, known)


def _differences(before: State, now: State, talking: str) -> list[Fact]:
    """Return what was done between two moments, as the rows have it."""
    facts: list[Fact] = []
    for key, (title, node) in now.nodes.items():
        was = before.nodes[key][1] if key in before.nodes else None
        facts += _work_facts(title, node, was, now.nodes.get(node.parent_id or ""))
    for key in now.said.keys() - before.said.keys():
        name, message = now.said[key]
        if message.kind == "answer":
            facts.append(("answered", now.questions[str(message.in_reply_to)][0], message.text))
        elif message.recipient != talking or message.heard_by is not None:
            facts.append(("told", name, message.text))
    for key, (text, is_open) in now.questions.items():
        was_open = key in before.questions and before.questions[key][1]
        if is_open and not was_open:
            facts.append(("asked" if key not in before.questions else "open again", text))
    facts += [now.triggers[key] for key in now.triggers.keys() - before.triggers.keys()]
    facts += [
        ("no more", *before.triggers[key]) for key in before.triggers.keys() - now.triggers.keys()
    ]
    facts += [("remembered", now.known[key]) for key in now.known.keys() - before.known.keys()]
    facts += [("forgot", before.known[key]) for key in before.known.keys() - now.known.keys()]
    return sorted(facts)


def _work_facts(
    title: str, node: WorkNode, was: WorkNode | None, above: tuple[str, WorkNode] | None
) -> list[Fact]:
    """Return what became of one piece of work; what is stopped with the work above it goes
    unsaid."""
    facts: list[Fact] = []
    if was is None and (node.source == "user" or node.is_goal):
        facts.append(("goal begun" if node.is_goal else "started", title))
    is_with_it = above is not None and _is_stopped(above[1])
    if was is not None and _is_stopped(node) != _is_stopped(was) and not is_with_it:
        facts.append(("stopped" if _is_stopped(node) else "goes on", title))
    has_ended = node.status.is_final and (was is None or was.status is not node.status)
    if has_ended and not _is_stopped(node):
        how = ENDS[node.status]
        how = "done, with doubts" if how == "result" and node.doubts else how
        facts.append(("ended" if above is None else "part ended", title, how, str(node.result)))
    return facts


def _is_stopped(node: WorkNode) -> bool:
    return node.status is NodeStatus.CANCELLED or node.cancel_requested


@asynccontextmanager
async def dialogue(folder: Path) -> AsyncGenerator[Dialogue]:
    """Serve a home in this folder for a person who talks; print the end when they leave."""
    cast = Cast()
    async with person(folder, cast.play) as it:
        talk = Dialogue(it.served, it.phone, cast=cast)
        yield talk
        await talk.leaves()
