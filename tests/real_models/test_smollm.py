"""A real, very weak model: no crash, no endless loop, budgets hold, nothing is done that is not.

The ordinary run has one goal. `make faults` has fifty goals and chats: in windows of three sizes,
and behind a proxy that speaks for three vendors.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from agiraph.domain.time import SystemClock
from agiraph.domain.work import Budget, NodeStatus, WorkNode
from agiraph.providers.catalogue import Catalogue
from agiraph.providers.facts.model_facts import Fact
from agiraph.providers.facts.prices import Prices
from agiraph.providers.registry import Keys, Registry
from agiraph.providers.servers import Server
from agiraph.store import spend
from agiraph.testing import World
from tests.conftest import SweepLog
from tests.real_models.servers import MODEL, litellm, llama, needs_models, needs_proxy
from tests.time_box import TimeBox

pytestmark = [needs_models, pytest.mark.timeout(900)]
TURNS = 3
TOKENS = 40_000
LAST_WORDS = 2
"""Calls after a limit: one for the last word, and one that is asked again."""
FEWEST = 2
"""Goals of each long test, however little time there is."""
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
CHATS = ("Hello!", "What are you working on?", "Thank you.", "Please write a poem into poem.md.")


@dataclass(frozen=True, slots=True)
class Ended:
    """A piece of work after its run."""

    node: WorkNode
    replies: int
    tokens: int
    files: Files

    @property
    def is_called_done(self) -> bool:
        """Whether the person is told that it is done, without doubts."""
        return self.node.status is NodeStatus.COMPLETED and not self.node.doubts


async def run_goal(
    folder: Path, servers: dict[str, Server], model: str, goal: Goal, *, turns: int = TURNS
) -> Ended:
    keys = Keys(servers=servers)
    async with World(folder, keys=keys, clock=SystemClock(), validates_events=False) as world:
        budget = Budget(turns=turns, tokens=TOKENS)
        founded = await world.found(goal.text, model=model, budget=budget)
        await world.settle()
        ended = await _ended(world, (await world.board(founded.team.id))[0])
    _check(ended, goal, turns)
    return ended


async def _ended(world: World, node: WorkNode) -> Ended:
    replies = [turn for turn in await world.turns(node.id) if turn.role == "assistant"]
    bill = await world.store.read(spend.of_team, node.team_id)
    tokens = sum(line.input_tokens + line.output_tokens for line in bill)
    return Ended(node, len(replies), tokens, world.published(node))


def _check(ended: Ended, goal: Goal, turns: int) -> None:
    node = ended.node
    # It has ended, or waits for a person: nothing runs on, and nothing waits for nothing.
    assert node.status.is_final or (node.status is NodeStatus.WAITING and node.waiting_reason)
    assert ended.replies <= turns + LAST_WORDS
    assert ended.tokens <= TOKENS
    assert not ended.is_called_done or goal.is_reached(node.result or "", ended.files)


@pytest.mark.slow
async def test_a_goal_with_a_real_model_ends_as_what_it_is(tmp_path: Path) -> None:
    async with llama(8_192) as server:
        clock = SystemClock()
        models = Catalogue(Registry(Keys(servers={"llama": server}), clock), Prices(), clock)
        await models.learn(f"llama/{MODEL}")
        facts = models.facts(f"llama/{MODEL}")
        await models.close()
        assert (facts.window, facts.tools) == (Fact(8_192, "server"), Fact(False, "server"))
        await run_goal(tmp_path, {"llama": server}, f"text/llama/{MODEL}", GOALS[1], turns=1)


@pytest.mark.long(share=0.1)
@pytest.mark.parametrize("window", [4_096, 8_192, 16_384])
async def test_goals_in_windows_of_every_size(
    tmp_path: Path, window: int, time_box: TimeBox, sweep_log: SweepLog
) -> None:
    ends: Counter[str] = Counter()
    async with llama(window) as server:
        for number, goal in enumerate(GOALS):
            if number >= FEWEST and not time_box.is_open:
                break
            folder = tmp_path / str(number)
            ended = await run_goal(folder, {"llama": server}, f"text/llama/{MODEL}", goal)
            ends[ended.node.status.value] += 1
    sweep_log.append(f"{ends.total()} goals with SmolLM2 in {window:,} tokens: {dict(ends)}")


@needs_proxy
@pytest.mark.long(share=0.1)
async def test_goals_behind_a_proxy_in_three_vendors_forms(
    tmp_path: Path, time_box: TimeBox, sweep_log: SweepLog
) -> None:
    ends: Counter[str] = Counter()
    async with llama(4_096) as server, litellm(server, tmp_path) as proxy:
        for number in range(4 * len(proxy)):
            if number >= len(proxy) and not time_box.is_open:
                break
            name = list(proxy)[number % len(proxy)]
            goal, folder = GOALS[number % len(GOALS)], tmp_path / str(number)
            ended = await run_goal(folder, proxy, f"text/{name}/{MODEL}", goal)
            ends[f"{name} {ended.node.status.value}"] += 1
    sweep_log.append(f"{ends.total()} goals with SmolLM2 behind LiteLLM: {dict(ends)}")


@pytest.mark.long(share=0.05)
@pytest.mark.parametrize("window", [4_096, 8_192])
async def test_a_conversation_with_a_real_model_is_answered(
    tmp_path: Path, window: int, time_box: TimeBox, sweep_log: SweepLog
) -> None:
    said = 0
    async with llama(window) as server:
        keys = Keys(servers={"llama": server})
        clock = SystemClock()
        async with World(
            tmp_path / "home", keys=keys, clock=clock, validates_events=False
        ) as world:
            budget = Budget(turns=1, tokens=TOKENS)
            founded = await world.found("Talk.", model=f"text/llama/{MODEL}", budget=budget)
            await world.settle()
            for text in CHATS:
                if said >= FEWEST and not time_box.is_open:
                    break
                await world.chat(founded.coordinator.id, text)
                await world.settle()
                said += 1
            heard = await world.conversation(founded.coordinator)
            board = await world.board(founded.team.id)
    asked = [m for m in heard if m.text in CHATS]
    answered = {m.in_reply_to for m in heard if m.sender == founded.coordinator.id}
    assert len(asked) == said
    assert {m.id for m in asked} <= answered
    assert all(node.status.is_final or node.waiting_reason for node in board)
    sweep_log.append(f"{said} messages to SmolLM2 in {window:,} tokens: all answered")
