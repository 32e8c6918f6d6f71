"""A real, very weak model: no crash, no endless loop, budgets hold, nothing is done that is not."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from agiraph.domain.time import SystemClock
from agiraph.domain.work import Budget, NodeStatus
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
GOALS = (
    "What is the capital of France?",
    "Write a haiku about rain into haiku.md.",
    "List three colours.",
    "Count the words in 'one two three'.",
    "Write hello.py, a program that prints hello, and run it.",
    "Ask me which colour I like.",
    "Compare two sorting algorithms in a table.",
    "Translate 'good morning' into French.",
    "Make a plan for a garden with two tasks, and give one away.",
    "Do nothing.",
)
EXPECTED_ENDS = {
    NodeStatus.COMPLETED,
    NodeStatus.FAILED,
    NodeStatus.PARTIAL,
    NodeStatus.WAITING,
    NodeStatus.CANCELLED,
}
MOST_RUNS = 50
"""Goals and chats of `make faults`."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A goal after its run."""

    status: NodeStatus
    calls: list[str]
    """The tools that the model has called, in order."""
    turns: int
    tokens: int


async def run_goal(
    folder: Path, servers: dict[str, Server], model: str, goal: str, *, turns: int = TURNS
) -> Ended:
    keys = Keys(servers=servers)
    async with World(folder, keys=keys, clock=SystemClock(), validates_events=False) as world:
        founded = await world.found(goal, model=model, budget=Budget(turns=turns, tokens=TOKENS))
        await world.settle()
        root = (await world.board(founded.team.id))[0]
        replies = [t for t in await world.turns(root.id) if t.role == "assistant"]
        bill = await world.store.read(spend.of_team, founded.team.id)
    calls = [call.name for reply in replies for call in reply.calls]
    tokens = sum(line.input_tokens + line.output_tokens for line in bill)
    return Ended(root.status, calls, len(replies), tokens)


def check(ended: Ended) -> None:
    assert ended.status in EXPECTED_ENDS
    # The last word after a limit is one more call.
    assert ended.turns <= TURNS + 2
    assert ended.tokens <= TOKENS + 10_000
    if ended.status is NodeStatus.COMPLETED:
        assert "finish" in ended.calls


@pytest.mark.slow
async def test_a_goal_with_a_real_model_ends_as_what_it_is(tmp_path: Path) -> None:
    async with llama(8_192) as server:
        clock = SystemClock()
        models = Catalogue(Registry(Keys(servers={"llama": server}), clock), Prices(), clock)
        await models.learn(f"llama/{MODEL}")
        facts = models.facts(f"llama/{MODEL}")
        await models.close()
        assert (facts.window, facts.tools) == (Fact(8_192, "server"), Fact(False, "server"))
        model = f"text/llama/{MODEL}"
        check(await run_goal(tmp_path, {"llama": server}, model, GOALS[0], turns=1))


@pytest.mark.long(share=0.05)
@pytest.mark.parametrize("window", [4_096, 8_192, 16_384])
async def test_goals_in_windows_of_every_size(
    tmp_path: Path, window: int, time_box: TimeBox, sweep_log: SweepLog
) -> None:
    ends: list[str] = []
    async with llama(window) as server:
        for number in range(MOST_RUNS // 4):
            if number > 1 and not time_box.is_open:
                break
            goal = GOALS[number % len(GOALS)]
            folder = tmp_path / str(number)
            ended = await run_goal(folder, {"llama": server}, f"text/llama/{MODEL}", goal)
            check(ended)
            ends.append(ended.status.value)
    sweep_log.append(f"{len(ends)} goals with SmolLM2 in {window:,} tokens: {', '.join(ends)}")


@needs_proxy
@pytest.mark.long(share=0.05)
async def test_goals_behind_a_proxy_in_three_vendors_forms(
    tmp_path: Path, time_box: TimeBox, sweep_log: SweepLog
) -> None:
    ends: list[str] = []
    async with llama(4_096) as server, litellm(server, tmp_path) as proxy:
        for number in range(MOST_RUNS // 4):
            if number > 2 and not time_box.is_open:
                break
            name = list(proxy)[number % len(proxy)]
            goal = GOALS[number % len(GOALS)]
            ended = await run_goal(tmp_path / str(number), proxy, f"text/{name}/{MODEL}", goal)
            check(ended)
            ends.append(f"{name} {ended.status.value}")
    sweep_log.append(f"{len(ends)} goals with SmolLM2 behind LiteLLM: {', '.join(ends)}")
