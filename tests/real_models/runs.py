"""Runs: a goal or a chat with the real model, what is left of it, and what must hold for it.

The model makes no call of its own accord. With a grammar, which llama.cpp's server enforces, it
writes calls in the form of `text/…`; which tool it calls and what it says there is its own choice.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from agiraph.core.domain.chat import Turn
from agiraph.core.domain.messages import Message
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.core.store.spend import Spend
from agiraph.models.options import ModelOptions
from agiraph.models.registry import Keys
from agiraph.models.servers import Server
from agiraph.testing import World
from tests.real_models.servers import MODEL

SERVER = "llamacpp"
"""The name that `agiraph up` gives a server of llama.cpp, whose models cost nothing."""
TURNS = 4
TOKENS = 8_000
"""Less than four turns of a goal need, with what is reserved for a reply."""
GRAMMAR = r"""
root ::= "<call " key " " call "\n</call>"
key ::= [0-9a-hjmnp-tv-z] [0-9a-hjkmnp-tv-z]{7}
call ::= write | read | accept | ask | finish
write ::= "write_file>\n{\"path\": \"" name "\", \"content\": \"" words "\"}"
read ::= "read_file>\n{\"path\": \"" name "\"}"
accept ::= "set_acceptance>\n{\"lines\": [\"" words "\"]}"
ask ::= "ask_human>\n{\"question\": \"" words "\"}"
finish ::= "finish>\n{\"summary\": \"" words "\"}"
name ::= [a-z]{1,8} "." ("md" | "py" | "txt")
words ::= [a-zA-Z0-9 .,?'-]{1,60}
"""
CALLS = ModelOptions(body={"grammar": GRAMMAR})
Files = Mapping[str, str]


class Goal(NamedTuple):
    """A goal, and whether it is reached with this result and these published files."""

    text: str
    is_reached: Callable[[str, Files], bool]


def _says(*words: str) -> Callable[[str, Files], bool]:
    return lambda result, _: all(word in result.lower() for word in words)


def _writes(name: str) -> Callable[[str, Files], bool]:
    return lambda _, files: bool(files.get(name, "").strip())


GOALS = (
    Goal("What is the capital of France?", _says("paris")),
    Goal("Write a haiku about rain into haiku.md.", _writes("haiku.md")),
    Goal("List three colours.", lambda result, _: len(result.split()) >= 3),
    Goal("Count the words in 'one two three'.", lambda r, _: "3" in r or "three" in r.lower()),
    Goal("Write hello.py, a program that prints hello, and run it.", _writes("hello.py")),
    Goal("Ask me which colour I like.", lambda _, __: False),
    Goal("Compare two sorting algorithms in a table.", _says("sort")),
    Goal("Translate 'good morning' into French.", _says("bonjour")),
    Goal("Make a plan for a garden in plan.md.", _writes("plan.md")),
    Goal("Write the sum of 17 and 25 into sum.txt.", lambda _, f: "42" in f.get("sum.txt", "")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A piece of work after its run."""

    node: WorkNode
    board: list[WorkNode]
    replies: list[Turn]
    bill: list[Spend]
    files: Files
    told: list[Message]
    """What the person finds in the inbox."""
    asked: list[Message]
    """What the person is asked and has not answered."""
    seconds: float

    @property
    def tokens(self) -> int:
        return sum(line.input_tokens + line.output_tokens for line in self.bill)

    @property
    def ending(self) -> str:
        """Return how it ended, for the report."""
        reason = self.node.stop_reason or self.node.waiting_reason
        doubts = " with doubts" if self.node.doubts else ""
        return f"{self.node.status.value} ({reason}){doubts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The servers, the model and its window for a run."""

    servers: Mapping[str, Server]
    model: str
    window: int
    options: ModelOptions = ModelOptions()
    is_counted: bool = True
    """Whether the server reports tokens; else they are estimated, and marked as such."""

    def world(self, folder: Path) -> World:
        bare = self.model.removeprefix("text/")
        keys = Keys(servers=dict(self.servers), options={bare: self.options})
        return World(folder, keys=keys, clock=SystemClock())


def words_of(server: Server, window: int) -> Setting:
    """Return a model that says what it likes."""
    return Setting(servers={SERVER: server}, model=f"text/{SERVER}/{MODEL}", window=window)


def calls_of(server: Server, window: int) -> Setting:
    """Return a model that can only make calls."""
    model = f"text/{SERVER}/{MODEL}"
    return Setting(servers={SERVER: server}, model=model, window=window, options=CALLS)


async def run_goal(
    folder: Path, setting: Setting, goal: Goal, budget: Budget | None = None
) -> Ended:
    """Found a team with the goal, wait until nothing can run, and check what is left."""
    began = time.monotonic()
    async with setting.world(folder) as world:
        founded = await world.found(goal.text, model=setting.model, budget=budget)
        await world.settle()
        board = await world.board(founded.team.id)
        turns = [turn for node in board for turn in await _turns(world, node)]
        ended = Ended(
            node=board[0],
            board=board,
            replies=[turn for turn in turns if turn.role == "assistant"],
            bill=await world.ledger(founded.team.id),
            files=world.published(board[0]),
            told=await world.inbox(),
            asked=await world.questions(founded.team.id),
            seconds=time.monotonic() - began,
        )
    check(ended, setting, goal, budget)
    return ended


async def _turns(world: World, node: WorkNode) -> list[Turn]:
    return [] if node.thread_id is None else await world.turns(node.id)


def check(ended: Ended, setting: Setting, goal: Goal, budget: Budget | None) -> None:
    """Raise AssertionError unless the work has ended as what it is, within its limits."""
    node = ended.node
    # Nothing runs on, nothing waits for nothing, and the person knows of it.
    assert all(one.status.is_final or one.waiting_reason for one in ended.board), ended.board
    assert all(one.stop_reason is not StopReason.BROKEN for one in ended.board), ended.board
    assert ended.told or ended.asked, node
    assert node.status is not NodeStatus.WAITING or ended.asked, node
    if budget is not None:
        assert len(ended.replies) <= budget.turns, node
        # No call begins beyond the limit; the last one may end beyond it.
        last = ended.replies[-1].usage.tokens if ended.replies else 0
        assert budget.tokens is None or ended.tokens - last < budget.tokens, node
    # Nothing is called done that is not.
    if node.status is NodeStatus.COMPLETED and not node.doubts:
        assert goal.is_reached(node.result or "", ended.files), node
    # Each request fits the window, and is counted and booked.
    for reply in ended.replies:
        assert reply.usage.input_tokens + reply.usage.output_tokens <= setting.window, reply
    assert sum(line.calls for line in ended.bill) == len(ended.replies)
    assert not any(line.lost for line in ended.bill), ended.bill
    assert all(setting.is_counted is not bool(line.estimated) for line in ended.bill), ended.bill
    if setting.model.removeprefix("text/").startswith(SERVER):
        assert not any(line.usd or line.unpriced for line in ended.bill), ended.bill


@dataclass(slots=True)
class Figures:
    """The sums of several runs, for the log of the long tests."""

    name: str
    ends: Counter[str] = field(default_factory=Counter[str])
    calls: Counter[str] = field(default_factory=Counter[str])
    tokens: int = 0
    longest_request: int = 0
    seconds: float = 0.0

    def add(self, ended: Ended) -> None:
        self.ends[ended.ending] += 1
        self.calls.update(call.name for reply in ended.replies for call in reply.calls)
        self.tokens = max(self.tokens, ended.tokens)
        inputs = [reply.usage.input_tokens for reply in ended.replies]
        self.longest_request = max([self.longest_request, *inputs])
        self.seconds = max(self.seconds, ended.seconds)

    def __str__(self) -> str:
        return (
            f"{self.ends.total()} goals with SmolLM2 {self.name}: {dict(self.ends)}, calls "
            f"{dict(self.calls)}, at most {self.tokens:,} tokens ({self.longest_request:,} in a "
            f"request) and {self.seconds:.0f} s a goal"
        )
