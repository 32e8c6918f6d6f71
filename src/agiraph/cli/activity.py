"""Activity: shows in a terminal chat what the team is working on: a card a task, and one line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agiraph.api.views import AgentView, JobView
from agiraph.cli.session import shown
from agiraph.client import Client
from agiraph.domain.events import Event
from agiraph.domain.waits import told_person

OPEN = ("running", "waiting", "queued")
SIGNS = {"running": "▸", "waiting": "…", "queued": "·", "done": "✓", "partial": "◐"}
"""The sign before a card, by its state; `✗` for all others."""
WIDTH = 100
_NOUNS = {"web_search": "searches", "web_fetch": "pages"}
_SHOWN_EVENTS = frozenset(
    {"node.started", "node.checkpoint", "node.completed", "node.partial", "node.failed"}
)


@dataclass(slots=True)
class Activity:
    """Follows the work of the team that a person talks with."""

    client: Client
    agent: AgentView
    _replies: set[str] = field(default_factory=set[str])
    """Nodes that are replies to a person, not work."""
    _shown: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The card of each node as it was last printed."""

    async def status(self) -> str:
        """Return a line with the numbers of running and waiting tasks; empty if there are none."""
        team = await self.client.team(self.agent.team_id)
        jobs = await self.client.jobs(self.agent.team_id)
        counted = {state: sum(job.state == state for job in jobs) for state in OPEN}
        parts = [f"{number} {state}" for state, number in counted.items() if number]
        if team.open_questions:
            parts.append(f"{team.open_questions} waiting for your answer")
        if not parts:
            return ""
        return shown(f"{self.agent.name} · {', '.join(parts)} · ${team.usd:.2f} spent")

    async def cards(self) -> list[str]:
        """Return the lines of a card for each piece of open work."""
        jobs = await self.client.jobs(self.agent.team_id)
        return [line for job in jobs if job.state in OPEN for line in card(job)]

    async def lines(self, event: Event) -> list[str]:
        """Return what is printed for an event: a card of research or long work that has changed, or
        what the agent looks up for its reply."""
        data = event.data
        if event.type == "node.created" and data["lane"] != "work":
            self._replies.add(data["node_id"])
        if event.type == "turn.added" and data["node_id"] in self._replies:
            return looks(data) if data["agent_id"] == self.agent.id else []
        if event.type not in _SHOWN_EVENTS or data["node_id"] in self._replies:
            return []
        jobs = await self.client.jobs(self.agent.team_id)
        job = next((job for job in jobs if job.node_id == data["node_id"]), None)
        if job is None or not (job.is_research or job.parent_id is None):
            return []
        lines = card(job)
        is_new = self._shown.get(job.node_id) != lines
        self._shown[job.node_id] = lines
        return lines if is_new else []


def card(job: JobView) -> list[str]:
    """Return a piece of work as lines: what it is and who is on it, how far it is, and what it did
    last."""
    sign = SIGNS.get(job.state, "✗")
    lines = [f"[cyan]{sign}[/] {shown(job.title)} [dim]{shown(job.worker)}, {_state(job)}[/]"]
    counts = [
        f"{job.used.get(tool, 0)} of {most} {_NOUNS.get(tool, tool)}"
        for tool, most in job.limits.items()
    ]
    if job.tasks:
        counts.append(f"{job.tasks_done} of {job.tasks} tasks done")
    told = " · ".join(
        [*counts, *([" ".join(told_person(job.progress).split())] if job.progress else [])]
    )
    if told and job.state in OPEN:
        lines.append(f"  [dim]{shown(told if len(told) <= WIDTH else told[: WIDTH - 1] + '…')}[/]")
    return lines


def _state(job: JobView) -> str:
    place = "" if job.position is None else f", number {job.position} in the queue"
    return f"{job.state}{place}"


def looks(data: Mapping[str, Any]) -> list[str]:
    """Return a line for what an agent looks up before it replies."""
    named: list[str] = []
    for call in data["calls"]:
        if call["name"] in LOOKS:
            named.append(_look(call["name"], str(next(iter(call["arguments"].values()), ""))[:60]))
    return [f"  [dim]One moment: I {shown(', '.join(named))} …[/]"] if named else []


def looked(consulted: Sequence[str]) -> str:
    """Return what a reply has read, in words; each is a call such as `look_into(bob)`."""
    calls = (each.removesuffix(")").partition("(") for each in consulted)
    return ", ".join(_look(name, subject) for name, _, subject in calls)


def _look(name: str, subject: str) -> str:
    # Nobody knows a task by its id.
    subject = "a task" if subject.startswith("node_") else subject
    return f"{LOOKS.get(name, name)} {subject}".strip()


LOOKS = {
    "look_into": "look into",
    "read_report": "read the report of",
    "search": "search for",
    "read_file": "read",
    "check_board": "look at the board",
    "job_status": "look at the work",
    "list_insights": "recall",
}
