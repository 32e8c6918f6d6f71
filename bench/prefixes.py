"""Prefixes: the share of each request that the next one of its thread repeats, on every wire.

Vendors charge a tenth or a quarter for the beginning of a request that they have seen before. The
run has tools, notices, a question, a message, a task given away, summaries and restarts. Printed
are, for each wire, the lowest and the mean share between two requests of a thread, and how often a
request began anew: once after each summary, and otherwise never.
"""

import asyncio
import re
import sys
import tempfile
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean

import orjson

from agiraph.core.domain.work import Budget
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.registry import Account, Keys
from agiraph.models.servers import Server
from agiraph.testing import Call, ModelServer, Says, World, call, says
from agiraph.testing.script import Seen

MODELS = {
    "chat completions": "openai/test",
    "responses": "house/test",
    "anthropic": "anthropic/test",
    "gemini": "gemini/test",
    "text": "text/openai/test",
}
WINDOW = 18_000
TURNS = 150
BEGUN_ANEW = 0.9
"""A request that repeats less of the one before it has another beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """What the requests of one run had in common."""

    shares: list[float]
    """For each request that goes on with its thread: the share of the one before it."""
    fresh: int
    """Requests with another beginning than the one before them in their thread."""
    summaries: int
    requests: int

    @property
    def lowest(self) -> float:
        return min(self.shares)


@dataclass(slots=True)
class _Play:
    """The model of all agents: it takes notes, asks, gives a task away, and ends."""

    model: str
    turns: int
    seen: list[Seen] = field(default_factory=list[Seen])
    steps: int = 0

    def reply(self, seen: Seen) -> Says:
        self.seen.append(seen)
        last = seen.messages[-1].text
        if "summar" in last.lower() and "[Runtime]" in last:
            return self._in_words(seen, "Notes are taken, and more will be.")
        if "You do one task" in seen.system:
            return self._says(seen, call("publish", summary="Counted: three."))
        self.steps += 1
        if self.steps >= self.turns:
            return self._says(seen, call("finish", summary="All notes are taken."))
        return self._says(seen, *self._step())

    def _step(self) -> tuple[Call, ...]:
        number = self.steps
        match number % 10:
            case 0:
                return (call("ask_human", question=f"Is note {number} right?"),)
            case 3:
                task = f"Count the words of note {number} and say how many there are."
                agent = f"new:{self.model}"
                return (call("assign_task", agent=agent, task=task, description="Count"),)
            case 5:
                return (call("call_tool", name="list_files", arguments={}), call("list_files"))
            case 7:
                return (call("read_file", path="missing.md"), call("no_such_tool", a=1))
            case _:
                text = f"Note {number}. " + f"words of note {number} " * 90
                return (call("write_file", path=f"{number}.md", content=text),)

    def _in_words(self, seen: Seen, text: str) -> Says:
        return says(text, input_tokens=len(seen.raw) // 4)

    def _says(self, seen: Seen, *calls: Call) -> Says:
        tokens = len(seen.raw) // 4
        if not self.model.startswith("text/"):
            return says(*calls, input_tokens=tokens)
        keys = re.findall(r"The key for this reply is (\w+)", seen.messages[-1].text)
        if not keys:  # the budget is spent, and no tool can be called any more
            return self._in_words(seen, "All notes are taken.")
        lines = [
            f"<call {keys[-1]} {made.name}>\n{orjson.dumps(made.arguments).decode()}\n</call>"
            for made in calls
        ]
        return says("\n".join(lines), input_tokens=tokens)


async def run(folder: Path, model: str, *, turns: int = TURNS, window: int = WINDOW) -> Prefixes:
    """Run a team on this model, with a restart at every question, and compare its requests."""
    play = _Play(model, turns)
    async with ModelServer(play.reply) as server:
        keys = Keys(
            {
                "openai": Account(key="k", base_url=server.openai_url),
                "anthropic": Account(key="k", base_url=server.anthropic_url),
                "gemini": Account(key="k", base_url=server.gemini_url),
            },
            servers={"house": Server(base_url=server.openai_url, wire="responses")},
        )
        prices = Prices({model: Terms(window=window)})
        async with World(folder, keys=keys, prices=prices, validates_events=False) as world:
            budget = Budget(turns=turns + 20)
            founded = await world.found("Take notes", model=model, budget=budget)
            await world.settle()
            while questions := await world.questions(founded.team.id):
                await world.restart()
                world.clock.advance(hours=5)  # a notice tells the new date
                await world.say(
                    founded.coordinator.id, "Go on, it is fine.", team_id=founded.team.id
                )
                await world.answer(questions[0], "Yes")
                await world.settle()
            [goal, *_] = await world.board(founded.team.id)
            summaries = sum(turn.is_summary for turn in await world.turns(goal.id))
    return compare(play.seen, summaries)


def compare(seen: list[Seen], summaries: int) -> Prefixes:
    """Return what each request repeats of the one before it in its thread."""
    threads: dict[str, list[bytes]] = {}
    for request in seen:
        threads.setdefault(request.system, []).append(request.raw)
    shares = [
        common(before, after) / (len(before) - len(tail(before)))
        for requests in threads.values()
        for before, after in pairwise(requests)
    ]
    kept = [min(share, 1.0) for share in shares if share >= BEGUN_ANEW]
    return Prefixes(
        shares=kept,
        fresh=len(shares) - len(kept),
        summaries=summaries,
        requests=len(seen),
    )


def common(before: bytes, after: bytes) -> int:
    """Return the number of bytes that both begin with."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if before[:middle] == after[:middle] else (low, middle - 1)
    return low


def tail(request: bytes) -> bytes:
    """Return the end of a request: the bracket after its messages, and the settings behind it."""
    return request[request.rindex(b"]") :]


async def _print() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    print(f"{'wire':18} {'lowest':>8} {'mean':>8} {'requests':>9} {'summaries':>10} {'anew':>5}")
    for wire, model in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = await run(Path(folder) / "home", model, turns=turns)
        print(
            f"{wire:18} {found.lowest:8.3%} {mean(found.shares):8.3%} {found.requests:9,} "
            f"{found.summaries:10,} {found.fresh:5,}"
        )


if __name__ == "__main__":
    asyncio.run(_print())
