"""Traces: statuses and exports of a run, for the seed scenarios."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from agiraph.core.domain.agents import Team
from agiraph.core.domain.events import Event
from agiraph.core.domain.work import WorkNode
from agiraph.features.backup.team_export import write_export
from agiraph.testing import World

STATUS = {
    "agent.hired": "idle",
    "node.started": "working",
    "node.waiting": "waiting",
    "team.completed": "completed",
}


def statuses(events: Iterable[Event], *, without: WorkNode | None = None) -> list[str]:
    """Return the statuses of the agent in order, from its events, without those of a review and its
    reviewer."""
    others = set() if without is None else {without.id, without.assignee_id}
    told = [
        STATUS[event.type]
        for event in events
        if event.type in STATUS
        and not others & {event.data.get("node_id"), event.data.get("agent_id")}
    ]
    return [status for status, _ in groupby(told)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A team as `agiraph export` writes it."""

    conversation: list[dict[str, Any]]
    events: list[dict[str, Any]]
    threads: dict[str, list[dict[str, Any]]]
    home: Path

    @property
    def said(self) -> list[tuple[str, str, str, str]]:
        """The conversation without ids and times."""
        return [(m["from"], m["to"], m["kind"], m["text"]) for m in self.conversation]

    def trace(self, node: WorkNode) -> list[tuple[str, str]]:
        """Return role and text of each turn of a node's thread; calls are named."""
        turns = self.threads[node.thread_id or ""]
        return [
            (turn["role"], turn["text"] or ", ".join(call["name"] for call in turn["calls"]))
            for turn in turns
            if turn["role"] not in ("system", "intent")
        ]


async def exported(world: World, team: Team, target: Path) -> Export:
    await write_export(world.store, world.path, team, target)
    return Export(
        conversation=_lines(target / "conversation.jsonl"),
        events=_lines(target / "events.jsonl"),
        threads={file.stem: _lines(file) for file in sorted((target / "threads").iterdir())},
        home=target / "home",
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]
