"""Programs: a real script that is hired as `cli:counter` and counts its runs in the ledger."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.faults.attack.context import Context, Ledger, own_file, require
from tests.faults.attack.model import order

HIRE_SECONDS = 2.2
"""The pause between two hires: a team may hire at most 30 agents a minute."""

SCRIPT = """\
#!/bin/sh
number=$(sed -n 's/.*Count number \\([0-9]*\\)\\..*/\\1/p' _task.md | head -n 1)
echo "$number" >> {runs}
tail -f {forever} &
sleep 0.3
echo "Counted $number." > _result.md
"""
"""It leaves a process that never ends by itself: the supervisor must end it."""


def settings(ledger: Ledger) -> str:
    """Write the script; return the table of agiraph.toml that makes it known."""
    script = ledger.folder / "counter"
    words = SCRIPT.format(runs=own_file("runs"), forever=ledger.file("forever"))
    script.write_text(words)
    script.chmod(0o755)
    return f'[commands.counter]\ncommand = "{script}"\n'


@dataclass(slots=True, kw_only=True)
class Programs:
    context: Context
    name: str = "programs"
    team: str = ""
    agent: str = ""
    numbers: list[int] = field(default_factory=list[int])

    async def set_up(self) -> None:
        team = await self.context.create_team(self.name)
        self.team, self.agent = team["id"], team["coordinator_id"]

    async def act(self) -> None:
        now = await self.context.client.ask("GET", f"/api/agents/{self.agent}")
        if now["status"] == "idle":
            number = next(self.context.numbers)
            body = {
                "message": order("program", number),
                "mode": "nudge",
                "client_id": f"c{number}",
            }
            await self.context.client.ask("POST", f"/api/agents/{self.agent}/send", body)
            self.numbers.append(number)
            await asyncio.sleep(HIRE_SECONDS)
        await asyncio.sleep(0.3)

    async def quick_check(self) -> None:
        self._check_runs(await self._nodes())

    async def check(self) -> Counter[str]:
        nodes = await self._nodes()
        self._check_runs(nodes)
        runs = self.context.ledger.counts("runs")
        for number in self.numbers:
            about = "program", number
            require(len(nodes.get(number, [])) == 1, *about, "was delegated as", nodes.get(number))
            [node] = nodes[number]
            require(node["status"] in ("completed", "failed"), *about, "is", node["status"])
            done = node["status"] == "completed"
            require(not done or node["result"] == f"Counted {number}.", *about, node["result"])
            require(not done or runs[str(number)] >= 1, *about, "succeeded and never ran")
        return Counter(programs=len(self.numbers), runs=runs.total())

    async def _nodes(self) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        for node in await self.context.client.board(self.team):
            word, _, number = node["title"].partition(" ")
            if word == "count":
                found.setdefault(int(number), []).append(node)
        return found

    def _check_runs(self, nodes: dict[int, list[Any]]) -> None:
        runs = self.context.ledger.counts("runs")
        for number, made in nodes.items():
            asked = sum(1 + self.context.restarted_by_person[node["id"]] for node in made)
            ran = runs[str(number)]
            require(ran <= asked, "program", number, "ran", ran, "times, assigned", asked, "times")
