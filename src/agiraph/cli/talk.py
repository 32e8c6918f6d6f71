"""`agiraph say`, `agiraph broadcast`: messages to agents; who they go to, and what the team does
meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import click

from agiraph.cli.session import Told, clean, connected, naming, printing, shown
from agiraph.client import Client
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.events import Event
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import told_person

if TYPE_CHECKING:
    from agiraph.api.views import ActView, AgentView, JobView, MessageView

SEARCHED_MESSAGES = 200
"""The number of newest messages that `find_reply` searches."""
OPEN = ("running", "waiting", "queued")
SIGNS = {"running": "▸", "waiting": "…", "queued": "·", "done": "✓", "partial": "◐"}
"""The sign before a card, by its state; `✗` for all others."""
WIDTH = 100
_NOUNS = {"web_search": "searches", "web_fetch": "pages"}
LOOKS = {
    "look_into": "look into",
    "read_report": "read the report of",
    "search": "search for",
    "read_file": "read",
    "check_board": "look at the board",
    "job_status": "look at the work",
    "list_insights": "recall",
}
_SHOWN_EVENTS = frozenset(
    {"node.started", "node.checkpoint", "node.completed", "node.partial", "node.failed"}
)

SCHEDULES = {
    "hour": "0 * * * *",
    "day": "0 9 * * *",
    "weekday": "0 9 * * 1-5",
    "week": "0 9 * * MON",
    "month": "0 9 1 * *",
}


def cron_of(every: str) -> str:
    """Return the cron expression of a word of `SCHEDULES`; any other text as it is."""
    return SCHEDULES.get(every.strip().lower(), every)


def act_line(act: ActView) -> str:
    """Return what a reply did, in a line that says whether it was undone."""
    return f"{act.text} (undone)" if act.is_undone else act.text


async def find_agent(client: Client, name: str, team: str | None) -> AgentView:
    """Return the agent with that id, the agent of the team with that name, whether it has left or
    not, or the coordinator of the team with that name."""
    if team is not None:
        return await _named(client, (await client.team(team)).id, name)
    known = "Name a team for its coordinator, an agent by its id, or one by name with --team."
    with naming("agent or team", name, known):
        if name.startswith("agent_"):
            return await client.agent(name)
        found = await client.team(name)
    if found.coordinator_id is None:
        raise NotFound("agent", name, known=f"All agents have left the team {found.name!r}.")
    return await client.agent(found.coordinator_id)


async def _named(client: Client, team: str, name: str) -> AgentView:
    """Return the agent with that name, else with that id, else the member with that role. Agents
    that have left keep their names."""
    members = await client.agents(team)
    wanted = name.lower()
    for key in ("name", "id", "role"):
        for agent in members:
            if getattr(agent, key).lower() == wanted:
                return agent
    for agent in await client.agents(team, all=True):
        if wanted in (agent.name.lower(), agent.id.lower()):
            return agent
    raise NotFound("teammate", name, known=f"On this team: {', '.join(a.name for a in members)}.")


async def find_reply(client: Client, message: MessageView) -> MessageView | None:
    """Return the reply to a message or to a later one: a reply answers all messages before it."""
    said = await client.conversation(message.recipient, limit=SEARCHED_MESSAGES)
    place = {each.id: index for index, each in enumerate(said)}
    for each in said:
        is_reply = each.sender == message.recipient and each.in_reply_to is not None
        # If the message is no longer among the newest ones, its place counts as behind all of them:
        # rather no reply than that of an earlier message.
        if is_reply and place.get(each.in_reply_to or "", -1) >= place.get(
            message.id, SEARCHED_MESSAGES
        ):
            return each
    return None


async def last_written(client: Client, agent: AgentView) -> MessageView:
    """Return the last message that the person wrote to an agent."""
    said = await client.conversation(agent.id, limit=SEARCHED_MESSAGES)
    own = [each for each in said if each.kind in ("message", "nudge") and each.sender != agent.id]
    if not own:
        raise NotFound("message", "--edit-last", known=f"You have not written to {agent.name!r}.")
    return own[-1]


async def reply_to(client: Client, message: MessageView, head: int) -> MessageView:
    """Wait for the reply to a message that was sent after the event `head`."""
    async with contextlib.aclosing(client.follow(message.team_id, head)) as events:
        async for event in events:
            is_said = event.type == "message.sent" and event.data["sender"] == message.recipient
            if is_said and (reply := await find_reply(client, message)):
                return reply
    raise AssertionError("events never end")


@click.command()
@click.argument("agent")
@click.argument("text")
@click.option("--team", help="The team of the AGENT, if AGENT is a name.")
@click.option(
    "--nudge", is_flag=True, help="Add TEXT to the agent's current work; it does not reply."
)
@click.option("--wait", "waits", is_flag=True, help="Wait for the reply and print it.")
@click.option("--edit-last", "is_edit", is_flag=True, help="TEXT replaces your last message.")
@click.option("--stop-work", is_flag=True, help="Stop the work that was begun for that message.")
@printing
async def say(
    agent: str,
    text: str,
    team: str | None,
    nudge: bool,
    waits: bool,
    is_edit: bool,
    stop_work: bool,
) -> Told:
    """Send TEXT to an AGENT.

    AGENT is an agent's id, its name with --team, or a team's name for its coordinator.
    """
    if nudge and waits:
        raise click.UsageError("A nudge gets no reply: leave out --wait or --nudge.")
    if stop_work and not is_edit:
        raise click.UsageError("--stop-work is about the message that --edit-last replaces.")
    async with connected() as client:
        found = await find_agent(client, agent, team)
        if waits and found.kind != "llm":
            raise Refused(f"{found.name!r} is a program and does not reply: leave out --wait.")
        # Read before the message is sent: the reply may be there before the first event is
        # requested.
        head = (await client.team(found.team_id)).head
        before = await last_written(client, found) if is_edit else None
        mode = "nudge" if nudge or (before and before.kind == "nudge") else "send"
        if waits and mode == "nudge":
            raise Refused("Your last message asked for no reply: leave out --wait.")
        edits = None if before is None else before.id
        message = await client.send(found.id, text, mode=mode, edits=edits, stop_work=stop_work)
        if waits:
            message = await reply_to(client, message, head)
    if waits:
        acts = [f"\u2192 {act_line(act)}" for act in message.acts]
        undo = [f"Undo it in: agiraph chat {found.id}"] if acts else []
        return message, clean("\n".join([message.text, *acts, *undo]))
    read = "It reads this before its next step."
    then = read if nudge else f"Read the reply: agiraph chat {found.id}"
    return message, f"Sent to {clean(found.name)}. {then}"


@click.command()
@click.argument("team")
@click.argument("text")
@printing
async def broadcast(team: str, text: str) -> Told:
    """Send TEXT to every agent of a TEAM (its id or name).

    The coordinator acts on it; the others read it when they next work.
    """
    async with connected() as client:
        found = await client.team(team)
        sent = await client.broadcast(found.id, text)
        names = {agent.id: agent.name for agent in await client.agents(found.id)}
    told = ", ".join(names.get(each.recipient, each.recipient) for each in sent)
    return sent, f"Sent to {clean(told) or 'nobody: all agents have left'}."


# What the team is working on


@dataclass(slots=True)
class Activity:
    """Follows the work of the team that a person talks with."""

    client: Client
    agent: AgentView
    _replies: set[str] = field(default_factory=set[str])
    """Nodes that are replies to a person, not work."""
    _shown: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """What was last printed of each node: a model may repeat a call that is refused."""

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
        lines: list[str] = []
        if data.get("node_id") in self._replies:
            if event.type == "turn.added" and data["agent_id"] == self.agent.id:
                lines = looks(data)
        elif event.type in _SHOWN_EVENTS:
            jobs = await self.client.jobs(self.agent.team_id)
            job = next((job for job in jobs if job.node_id == data["node_id"]), None)
            if job is not None and (job.is_research or job.parent_id is None):
                lines = card(job)
        if not lines or self._shown.get(data["node_id"]) == lines:
            return []
        self._shown[data["node_id"]] = lines
        return lines


def card(job: JobView) -> list[str]:
    """Return a piece of work as lines: what it is and who is on it, how far it is, and what it did
    last."""
    sign = SIGNS.get(job.state, "✗")
    place = "" if job.position is None else f", number {job.position} in the queue"
    state = f"{job.state}{place}"
    lines = [f"[cyan]{sign}[/] {shown(job.title)} [dim]{shown(job.worker)}, {state}[/]"]
    counts = [
        f"{job.used.get(tool, 0)} of {most} {_NOUNS.get(tool, tool)}"
        for tool, most in job.limits.items()
    ]
    if job.tasks:
        counts.append(f"{job.tasks_done} of {job.tasks} tasks done")
    if job.progress:
        counts.append(" ".join(told_person(job.progress).split()))
    told = " · ".join(counts)
    if told and job.state in OPEN:
        lines.append(f"  [dim]{shown(told if len(told) <= WIDTH else told[: WIDTH - 1] + '…')}[/]")
    return lines


def looks(data: Mapping[str, Any]) -> list[str]:
    """Return a line for what an agent looks up before it replies."""
    named = [
        _look(call["name"], str(next(iter(call["arguments"].values()), ""))[:60])
        for call in data["calls"]
        if call["name"] in LOOKS
    ]
    return [f"  [dim]One moment: I {shown(', '.join(named))} …[/]"] if named else []


def looked(consulted: Sequence[str]) -> str:
    """Return what a reply has read, in words; each is a call such as `look_into(bob)`."""
    calls = (each.removesuffix(")").partition("(") for each in consulted)
    return ", ".join(_look(name, subject) for name, _, subject in calls)


def _look(name: str, subject: str) -> str:
    # Nobody knows a task by its id.
    subject = "a task" if subject.startswith("node_") else subject
    return f"{LOOKS.get(name, name)} {subject}".strip()
