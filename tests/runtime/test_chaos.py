"""Chaos: workers are killed and hang, the database restarts, and every node is done once."""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Literal

import pytest

from agiraph.app import open_store
from agiraph.core.domain.errors import StoreUnavailable
from agiraph.core.domain.events import Event
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import answers, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.store import events, messages, nodes, spend, threads
from agiraph.core.store.database import Store
from tests.conftest import Server, SweepLog
from tests.runtime.worker import Worker, steps
from tests.time_box import TimeBox

Fault = Literal["kill", "hang", "restart"]
FEWEST_RUNS = 2
"""Runs of fifty faults each, however little time there is."""
ENDS = {
    "node.completed",
    "node.partial",
    "node.failed",
    "node.cancelled",
    "node.waiting",
    "node.assigned",
}


@dataclass(slots=True)
class Chaos:
    """Three workers, many agents, and a list of faults to inject."""

    url: str
    store: Store
    postgres: Server
    home: Path
    chance: random.Random
    agents: int
    messages: int
    faults: list[Fault]
    workers: list[Worker] = field(default_factory=list[Worker])
    staff: list[NewTeam] = field(default_factory=list[NewTeam])

    @property
    def ledger(self) -> Path:
        return self.home.parent / "ledger"

    async def retry(self, act: Callable[[], Awaitable[object]]) -> object:
        """Repeat a request, with the same idempotency key, until the store accepts it."""
        while True:
            with contextlib.suppress(StoreUnavailable):
                return await act()
            await asyncio.sleep(0.1)

    async def hire(self) -> None:
        for number in range(self.agents):
            founded = await self.store.write(
                teams.create,
                owner_id=OWNER,
                goal=f"Agent {number}",
                model="scripted/ada",
                mode="infinite",
                start=False,
                learns=False,
            )
            self.staff.append(founded)
        self.workers = [await self._worker() for _ in range(3)]

    async def _worker(self) -> Worker:
        worker = await Worker.start(self.home, self.url, self.ledger, "--slow", "--quick")
        worker.listening = asyncio.create_task(worker.listen())
        return worker

    async def send_tasks(self) -> None:
        """Send each agent its tasks, in random order, spread over the time of the faults."""
        said = [(agent, n) for agent in self.staff for n in range(self.messages)]
        self.chance.shuffle(said)
        for agent, number in said:
            text = f"piece {number} of {agent.team.goal}, notes: {self.chance.randrange(1, 4)}"
            await self.retry(
                lambda agent=agent, number=number, text=text: self.store.write(
                    bus.send,
                    Draft(
                        team_id=agent.team.id,
                        sender=OWNER,
                        recipient=agent.coordinator.id,
                        text=text,
                        client_id=f"{number}",
                    ),
                )
            )
            await asyncio.sleep(2 * len(self.faults) / len(said))

    async def inject_faults(self) -> None:
        for fault in self.faults:
            await asyncio.sleep(self.chance.uniform(0.5, 1.5))
            place = self.chance.randrange(len(self.workers))
            match fault:
                case "kill":
                    await self.workers[place].kill()
                    self.workers[place] = await self._worker()
                case "hang":
                    self.workers[place].freeze()
                    await asyncio.sleep(5)  # longer than --quick lets a worker be silent
                    self.workers[place].thaw()
                case _:
                    await asyncio.to_thread(self.postgres.stop, "immediate")
                    await asyncio.to_thread(self.postgres.start)

    async def settle(self, seconds: float) -> None:
        """Wait until no work is left; answer the questions of nodes that crashed too often."""
        async with asyncio.timeout(seconds):
            # Other processes do the work, so only the rows show that it is done.
            while await self.retry(self.answer_all) or await self.retry(self.at_work):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def at_work(self) -> bool:
        return bool(await self.store.read(nodes.queues))

    async def answer_all(self) -> bool:
        asked = [
            question
            for founded in self.staff
            for question in await self.store.read(messages.open_questions, founded.team.id)
        ]
        for question in asked:
            await self.store.write(
                answers.answer_question, question.id, "Try again.", person_id=OWNER
            )
        return bool(asked)

    async def end(self) -> None:
        for worker in self.workers:
            await worker.kill()
        await self.store.close()


async def check_agent(chaos: Chaos, founded: NewTeam) -> tuple[int, int]:
    """Check the invariants of one agent; return its number of takeovers and of replies."""
    read = chaos.store.read
    board = await read(nodes.board, founded.team.id)
    told = await read(events.after, founded.team.id, 0, limit=100_000)
    where = founded.team.goal
    failed = [e.data for e in told if e.type == "node.failed"]
    assert {n.status for n in board} == {NodeStatus.COMPLETED}, (where, failed)
    assert [e.seq for e in told] == list(range(1, len(told) + 1)), where
    ends = [e.data["node_id"] for e in told if e.type == "node.completed"]
    assert sorted(ends) == sorted(n.id for n in board), where
    check_one_at_a_time(told)
    heard: list[str] = []
    replies = 0
    for thread in await read(threads.of_agent, founded.coordinator.id):
        turns = await read(threads.turns, thread.id)
        heard += [t.text for t in turns if t.role == "user"]
        replies += sum(t.role == "assistant" for t in turns)
        assert [t.seq for t in turns] == list(range(1, len(turns) + 1)), where
        answered = Counter(t.ref for t in turns if t.role == "tool")
        assert answered == Counter(c.id for t in turns for c in t.calls), where
    for number in range(chaos.messages):
        assert sum(f"piece {number} of" in text for text in heard) == 1, (where, number)
    claims = sum(e.type == "node.started" for e in told)
    return claims - len(board), replies


def check_one_at_a_time(told: list[Event]) -> None:
    """Check that an agent runs one node at a time; a second start is a takeover of that node."""
    running = None
    for event in told:
        node = event.data.get("node_id")
        if event.type == "node.started":
            assert running in (None, node), event
            running = node
        elif event.type in ENDS and node == running:
            running = None


async def run(chaos: Chaos, *, patience: float) -> str:
    begun = time.monotonic()
    try:
        await chaos.hire()
        async with asyncio.TaskGroup() as group:
            group.create_task(chaos.send_tasks())
            group.create_task(chaos.inject_faults())
        await chaos.settle(patience)
        takeovers = replies = 0
        for founded in chaos.staff:
            more, said = await check_agent(chaos, founded)
            takeovers, replies = takeovers + more, replies + said
        asked = len(chaos.ledger.read_text().splitlines())
        spent = [s for f in chaos.staff for s in await chaos.store.read(spend.of_team, f.team.id)]
        paid = sum(s.calls + s.lost for s in spent)
    finally:
        await chaos.end()
    cut_off = chaos.agents * chaos.faults.count("restart")
    assert replies <= asked <= replies + takeovers + cut_off
    assert paid >= asked
    return (
        f"chaos: {dict(Counter(chaos.faults))} over {chaos.agents} agents, {replies} replies,"
        f" {takeovers} takeovers, {asked - replies} calls repeated,"
        f" {time.monotonic() - begun:.0f} s"
    )


async def begin(
    tmp_path: Path, postgres: Server, *, seed: int, agents: int, messages: int, faults: list[Fault]
) -> Chaos:
    url = postgres.fresh()
    return Chaos(
        url=url,
        store=await open_store(url, SystemClock()),
        postgres=postgres,
        home=tmp_path / "home",
        chance=random.Random(seed),
        agents=agents,
        messages=messages,
        faults=faults,
    )


async def test_all_work_is_done_once_while_workers_are_killed_and_the_database_restarts(
    tmp_path: Path, postgres: Server, sweep_log: SweepLog
) -> None:
    faults: list[Fault] = ["kill", "hang", "kill", "kill", "restart", "kill"]
    chaos = await begin(tmp_path, postgres, seed=4711, agents=20, messages=3, faults=faults)
    sweep_log.append(await run(chaos, patience=40))


@pytest.mark.long(share=0.2)
async def test_all_work_is_done_once_during_minutes_of_kills_hangs_and_restarts(
    tmp_path: Path, postgres: Server, sweep_log: SweepLog, time_box: TimeBox, seed: int
) -> None:
    for number in count(seed):
        kinds: list[Fault] = ["kill", "hang", "restart"]
        faults = random.Random(number).choices(kinds, [12, 4, 3], k=50)
        folder = tmp_path / str(number)
        folder.mkdir()
        chaos = await begin(folder, postgres, seed=number, agents=40, messages=15, faults=faults)
        sweep_log.append(f"seed {number}: {await run(chaos, patience=120)}")
        if number - seed + 1 >= FEWEST_RUNS and not time_box.is_open:
            break


def test_the_scripted_worker_finds_its_task_whatever_notes_stand_around_it() -> None:
    notice, task = "It was cut off. Find out before you make it again.", "Ada said: notes: 2"
    later = "piece 2 of Agent 1, notes: 3"
    for texts in ([task, later], [task, notice], [notice, task], [f"{task}\n\n{notice}", later]):
        assert steps(texts) == 2
