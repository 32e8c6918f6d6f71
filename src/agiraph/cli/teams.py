"""`agiraph teams` and others: list teams, tasks, agents and costs, and act on them."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractAsyncContextManager
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import click
from rich.table import Column

from agiraph.cli.session import (
    Columns,
    Local,
    Told,
    clean,
    command,
    connected,
    listing,
    naming,
    printing,
    shown,
    source,
    table,
)
from agiraph.cli.talk import find_agent
from agiraph.client import Client
from agiraph.core.domain.agents import TeamState
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.window_use import WindowUse
from agiraph.core.domain.work import Extension, HeldBy, NodeStatus, told_person

if TYPE_CHECKING:
    from agiraph.api.feature_views.known import Insight, Memory
    from agiraph.api.server_views import StatusView
    from agiraph.api.views import (
        AgentView,
        NodeDetail,
        NodeView,
        TeamView,
    )

LISTED = 200
"""The most memories or insights that are listed, the newest ones."""
_COLOURS = {
    **dict.fromkeys(("active", "running", "working"), "green"),
    **dict.fromkeys(("waiting", "paused", "partial"), "yellow"),
    **dict.fromkeys(("waiting_for_you", "needs_you"), "bold yellow"),
    "failed": "red",
}


def coloured(status: str) -> str:
    """Return a status as words with markup for its colour."""
    words = status.replace("_", " ")
    return f"[{_COLOURS[status]}]{words}[/]" if status in _COLOURS else words


HELD: dict[HeldBy, str] = {
    "all_stopped": "waits: all work is stopped",
    "team_paused": "waits: the team is paused",
    "team_stopped": "waits: the team is stopped",
    "budget": "cannot start: the budget is used up",
    "dependencies": "waits for other tasks",
    "decision": "needs a decision: a task it needs did not succeed",
    "nobody_free": "waits: nobody is free for it",
}
"""What keeps a task from starting, in words."""


def state_words(state: TeamState) -> str:
    """Return the state of a team as people read it, such as *Needs you*."""
    return state.replace("_", " ").capitalize()


def _coloured_state(state: TeamState) -> str:
    words = state_words(state)
    return f"[{_COLOURS[state]}]{words}[/]" if state in _COLOURS else words


_TEAMS: Columns[TeamView] = (
    ("id!", lambda team: team.id),
    ("name", lambda team: shown(team.name)),
    ("status!", lambda team: _coloured_state(team.state)),
    ("questions", lambda team: f"[bold yellow]{team.open_questions or ''}[/]"),
    ("cost", lambda team: f"${team.usd:.4f}"),
)
BOARD: Columns[NodeView] = (
    ("task!", lambda node: node.id),
    ("title", lambda node: "  " * node.depth + shown(node.title)),
    ("agent", lambda node: shown(node.assignee or "")),
    ("status", lambda node: coloured(node.status) + (", with doubts" if node.doubts else "")),
    ("", lambda node: shown(_note(node))),
)
AGENTS: Columns[AgentView] = (
    ("name!", lambda agent: shown(agent.name)),
    ("role", lambda agent: shown(agent.role)),
    ("model", lambda agent: shown(agent.model if agent.command is None else agent.command)),
    ("status!", lambda agent: coloured(agent.status)),
    ("task", lambda agent: shown(agent.node_title)),
    (Column("thread", overflow="fold"), lambda agent: agent.thread_id or ""),
    ("id!", lambda agent: agent.id),
)


def _kind(item: Memory | Insight) -> str:
    from agiraph.api.feature_views import known  # most commands show no knowledge

    return item.type if isinstance(item, known.Insight) else "memory"


_KNOWLEDGE: Columns[Memory | Insight] = (
    ("id!", lambda item: item.id),
    ("kind", _kind),
    ("since", lambda item: f"{item.created_at:%Y-%m-%d}"),
    ("status", lambda item: coloured(item.status)),
    ("what", lambda item: shown(item.content)),
)

# Listing


@click.command()
@printing
async def teams() -> Told:
    """List all teams, with their open questions and their cost."""
    async with source() as found:
        listed = await found.teams()
    return listing(listed, _TEAMS, 'No teams yet. Create one with: agiraph new "GOAL"')


@click.command()
@click.argument("team")
@printing
async def board(team: str) -> Told:
    """Show the tasks of a TEAM (its id or name) with their status and result."""
    async with source() as found:
        work = await found.board((await found.team(team)).id)
    return work, table(work, BOARD)


def _note(node: NodeView) -> str:
    if node.status is NodeStatus.CANCELLED and node.canceller_id is not None:
        who = "you" if is_person(node.canceller_id) else node.canceller
        return f"by {who}"
    if node.held_by is not None and not node.waiting_reason:
        return HELD[node.held_by]
    first = (node.result or "").partition("\n")[0]
    note = told_person(node.waiting_reason or "") or shorten(first, 80, placeholder="…")
    if node.status in (NodeStatus.PARTIAL, NodeStatus.FAILED) and node.stop_reason:
        return f"{node.stop_reason.words}: {note}" if note else node.stop_reason.words
    return note


@click.command()
@click.argument("team")
@click.option("--all", "all_", is_flag=True, help="Also list agents that have left the team.")
@printing
async def agents(team: str, all_: bool) -> Told:
    """List the agents of a TEAM (its id or name), with their tasks and threads."""
    async with source() as found:
        roster = await found.agents((await found.team(team)).id, all=all_)
    return roster, table(roster, AGENTS)


@click.command()
@click.argument("thread")
@printing
async def thread(thread: str) -> Told:
    """Show a THREAD turn by turn. Give a thread's id, or an agent's id for its current thread."""
    async with source() as found:
        wanted = thread
        if thread.startswith("agent_"):
            agent = await found.agent(thread)
            if agent.thread_id is None:
                raise NotFound("thread", thread, known=f"{agent.name} has done nothing yet.")
            wanted = agent.thread_id
        with naming("thread", thread, "`agiraph agents` lists agents and threads."):
            turns, use = await found.thread(wanted), await found.window(wanted)
    lines = [wanted, _window_text(use)]
    for turn in turns:
        said = f" {turn.text}" if turn.text else ""
        lines.append(f"\n[{turn.at:%H:%M:%S}] {turn.role}{said}")
        lines += [f"  → {call.name} {call.arguments}" for call in turn.calls]
    return turns, clean("\n".join(lines))


def _window_text(use: WindowUse) -> str:
    """Return what fills the context window, in a line."""
    parts = ", ".join(f"{each.part} {each.tokens:,}" for each in use.parts) or "empty"
    size = "" if use.window is None else f" of {use.window:,} ({use.tokens / use.window:.0%})"
    return f"Window: about {use.tokens:,}{size} tokens: {parts}"


_of_team = click.option("--team", help="The team of the AGENT, if AGENT is a name.")


@click.command()
@click.argument("agent")
@_of_team
@printing
async def memories(agent: str, team: str | None) -> Told:
    """List what an AGENT remembers about you: an agent's id, or a team for its coordinator."""
    async with source() as found:
        known = await found.memories((await find_agent(found, agent, team)).id, limit=LISTED)
    return listing(known, _KNOWLEDGE, "It remembers nothing about you yet.")


@click.command()
@click.argument("agent")
@_of_team
@click.option("--query", default="", help="Only those that fit these words.")
@printing
async def insights(agent: str, team: str | None, query: str) -> Told:
    """List what an AGENT has learned for its work: an agent's id, or a team for its coordinator."""
    async with source() as found:
        who = await find_agent(found, agent, team)
        known = await found.insights(who.id, query=query, limit=LISTED)
    return listing(known, _KNOWLEDGE, "Nothing fits." if query else "It has learned nothing yet.")


@click.command()
@printing
async def status() -> Told:
    """Show the running server: its version, what fails, and how commands are confined."""
    async with connected() as client:
        found, listed = await client.status(), await client.teams()
    states: Counter[TeamState] = Counter(team.state for team in listed)
    of_teams = ", ".join(f"{states[state]} {state_words(state)}" for state in states)
    lines = _status(client.url, found)
    return found, "\n".join([*lines, f"  teams: {of_teams}"] if of_teams else lines)


def _status(url: str, found: StatusView) -> list[str]:
    sandbox = found.sandbox
    mark = "✗" if sandbox.level == "none" else "✓"
    lines = [f"✓ server {found.build} at {url}"]
    lines += [f"✗ background work: {sentence}" for sentence in found.failing]
    lines += [f"{mark} sandbox {sandbox.level}: {sandbox.description}"]
    lines += [f"    instead of {reason}" for reason in sandbox.reasons]
    return [*lines, *(f"    not enforced: {way}" for way in sandbox.not_held)]


# Acting on teams


@click.command()
@click.argument("team", required=False)
@click.option(
    "--all",
    "all_",
    is_flag=True,
    help="Emergency stop: cancel all work of all teams, replies to you included.",
)
@command
async def stop(team: str | None, all_: bool) -> None:
    """Cancel the unfinished tasks of a TEAM, or of --all teams, and end their processes."""
    async with _one_or_all(team, all_) as client:
        if team is None:
            ended = await client.stop_everything()
            teams, tasks = counted(ended.teams, "team"), counted(ended.nodes, "task")
            return click.echo(f"Stopped {teams} and cancelled {tasks}.")
        stopped = await client.stop((await client.team(team)).id)
    click.echo(
        f"Stopped {clean(stopped.name)!r}. Nothing was deleted; start it again with: "
        f"agiraph resume {stopped.id}"
    )


@click.command()
@click.argument("team", required=False)
@click.option("--all", "all_", is_flag=True, help="Interrupt the work of every team now.")
@command
async def pause(team: str | None, all_: bool) -> None:
    """Pause a TEAM after its current step. It still answers your messages.

    With --all, the work of every team is interrupted at once, and none begins, also after a
    restart, until `agiraph resume --all`. Nothing is cancelled.
    """
    async with _one_or_all(team, all_) as client:
        if team is None:
            stop = await client.stop_all_work()
            return click.echo(
                f"All work is stopped: {counted(stop.running, 'task was', 'tasks were')} "
                f"interrupted, {counted(stop.queued, 'waits', 'wait')}. "
                "Continue with: agiraph resume --all"
            )
        paused = await client.pause((await client.team(team)).id)
    click.echo(f"Paused {clean(paused.name)!r}. Continue with: agiraph resume {paused.id}")


@click.command()
@click.argument("team", required=False)
@click.option("--all", "all_", is_flag=True, help="Continue after `agiraph pause --all`.")
@command
async def resume(team: str | None, all_: bool) -> None:
    """Let a paused TEAM continue its work, or start that of a stopped one again where it was.

    With --all, end `agiraph pause --all`.
    """
    async with _one_or_all(team, all_) as client:
        if team is None:
            woken = await client.resume_all_work()
            return click.echo(f"Resumed: {counted(woken.queues, 'queue has', 'queues have')} work.")
        resumed = await client.resume((await client.team(team)).id)
    click.echo(f"Resumed {clean(resumed.name)!r}. Watch it with: agiraph tail {resumed.id}")


def _one_or_all(team: str | None, all_: bool) -> AbstractAsyncContextManager[Client]:
    """Connect to the server, if either a team was named or all of them."""
    if all_ == (team is not None):
        raise click.UsageError("Name one team, or give --all.")
    return connected()


@click.command()
@click.argument("team")
@click.option("--name", help="The team's name, instead of typing it.")
@click.option("--stop", "stop_", is_flag=True, help="End its work first, if it is working.")
@command
async def delete(team: str, name: str | None, stop_: bool) -> None:
    """Delete a TEAM (its id or name) for good: messages, files, memories, all of it.

    To keep a copy, run `agiraph export` first. To hide a team only, archive it in the web UI.
    """
    async with connected() as client:
        found = await client.team(team)
        if name is None:
            click.echo(f"This deletes everything of {clean(found.name)!r} and cannot be undone.")
            name = click.prompt("Type the team's name to delete it", default="", show_default=False)
        deleted = await client.delete_team(found.id, name=name, stop=stop_)
    click.echo(f"Deleted {clean(deleted.name)!r}.")


# Acting on tasks


@click.command()
@click.argument("task")
@command
async def cancel(task: str) -> None:
    """Cancel a TASK by its id, and all tasks below it. The rest of the team goes on."""
    async with connected() as client:
        found = await _task(client, task)
        await client.cancel_node(found.id)
    if found.status.is_final:
        below = "What was still open below it is cancelled."
        return click.echo(f"{clean(found.title)!r} is {found.status} already. {below}")
    click.echo(f"Cancelled {clean(found.title)!r}. Start it again with: agiraph retry {found.id}")


@click.command()
@click.argument("task")
@command
async def retry(task: str) -> None:
    """Start a cancelled, failed or partial TASK again, by its id. It goes on where it stopped."""
    async with connected() as client:
        tried = await client.retry_node((await _task(client, task)).id)
    click.echo(f"Started {clean(tried.title)!r} again. Watch it with: agiraph tail {tried.team_id}")


async def _task(client: Client, task: str) -> NodeDetail:
    with naming("task", task, "`agiraph board TEAM` lists them."):
        return await client.node(task)


@click.command()
@click.argument("node")
@click.option("--turns", type=click.IntRange(1), help="How many more turns.")
@click.option("--tokens", type=click.IntRange(1), help="How many more tokens.")
@click.option(
    "--budget",
    "--usd",
    "usd",
    type=click.FloatRange(min=0, min_open=True),
    help="How many more dollars.",
)
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), help="How many more seconds."
)
@command
async def extend(node: str, **given: Any) -> None:
    """Raise the limits of a NODE: the id of a task, or a team for its goal.

    A task that a limit ended goes on where it stopped; one that still works gets more room.
    """
    more = {name: amount for name, amount in given.items() if amount is not None}
    if not more:
        raise click.UsageError(
            "Say how much more it gets: --turns, --tokens, --budget (dollars) or --seconds."
        )
    async with source(to_write=True) as found:
        node_id = node if node.startswith("node_") else await _goal_of(found, node)
        extended = await found.extend_node(node_id, Extension(**more))
    team = extended.team_id
    then = f"Watch it with: agiraph tail {team}"
    if isinstance(found, Local):
        then = f"Continue with: agiraph run --resume {team}"
    click.echo(f"Extended {clean(extended.title)!r}. {then}")


async def _goal_of(found: Client, name: str) -> str:
    """Return the id of the node of a team's newest goal."""
    team = await found.team(name)
    goals = [n for n in await found.board(team.id) if n.source == "system" and not n.parent_id]
    if not goals:
        raise Refused(f"{team.name!r} has no task for its goal; name a task by its id.")
    return max(goals, key=lambda goal: goal.id).id
