"""Progress: a team's events as lines of a terminal; `agiraph tail`; a goal on a server."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner

from agiraph.api.views import InboxItem, MessageView, NodeDetail, NodeView, TeamView
from agiraph.cli import asking
from agiraph.cli.inbox import everything
from agiraph.cli.session import CONNECTION_LOST, command, connected, plain_console, shown
from agiraph.client import Client, ConnectionLost, Frame, ReplyDelta, Resync
from agiraph.client.teams import NewTeam
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events import Event
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.text.visible import visible
from agiraph.core.domain.waits import told_person
from agiraph.core.domain.work import NodeStatus

WIDTH = 100


def _line(text: str) -> str:
    return " ".join(text.split())


def _short(text: str) -> str:
    line = _line(text)
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


@dataclass(slots=True)
class Progress:
    """Prints each event as a line; on a terminal, the current activity and the cost stand below."""

    console: Console
    turns: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: bool = False
    activity: str = "starting"
    failure: str = ""
    """The newest failure. `model.failed` and `node.failed` give the same text: print it once."""
    _names: dict[str, str] = field(default_factory=dict[str, str])
    """Names of agents by agent id; and by node id, the agent that works on the node."""
    _live: Live | None = field(default=None)

    def __enter__(self) -> "Progress":
        if self.console.is_terminal:
            self._live = Live(
                self._live_line(), console=self.console, transient=True, refresh_per_second=8
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()

    def add_name(self, agent_id: str, name: str) -> None:
        """Record the name of an agent that joined before the first event shown."""
        self._names[agent_id] = name

    def pause(self) -> None:
        """Clear the live line, to print a result or ask a question."""
        if self._live is not None:
            self._live.stop()

    def resume(self) -> None:
        """Show the live line again."""
        if self._live is not None:
            self._live.start()

    @property
    def bill(self) -> str:
        """Return the turns, tokens and dollars so far, as text."""
        money = f"${self.usd:.4f}" + (" and calls without a known price" if self.unpriced else "")
        return f"{counted(self.turns, 'turn')} · {counted(self.tokens, 'token')} · {money}"

    def _live_line(self) -> Spinner:
        return Spinner("dots", text=f" {shown(self.activity)}  [dim]{self.bill}[/dim]")

    def show_delta(self, words: str) -> None:
        """Show a piece of a reply that is being streamed."""
        self._set_activity(_short("thinking: " + words))

    def _set_activity(self, activity: str) -> None:
        self.activity = activity
        if self._live is not None:
            self._live.update(self._live_line())

    def _worker(self, data: Mapping[str, Any]) -> str:
        """Return the name of the agent that works on the event's node, with a space behind it."""
        return self._agent(self._names.get(data["node_id"], ""))

    def _agent(self, agent_id: str) -> str:
        """Return the agent's name with a space behind it; empty if the team has one agent."""
        name = self._names.get(agent_id, "")
        # `_names` has node ids as keys, too.
        alone = sum(key.startswith("agent_") for key in self._names) < 2
        return "" if alone or not name else f"[b]{shown(name)}[/] "

    def warn(self, what: str) -> None:
        """Print what is wrong before the work starts; nothing if the text is empty."""
        if what and what != self.failure:
            self.failure = what
            self.console.print(f"[yellow]![/] {shown(_line(what))} Trying again until it answers.")

    def _show_failure(self, why: str) -> None:
        """Print the whole reason, however long: its end says what to do."""
        self.failure = why
        self.console.print(f"[red]![/] {shown(_line(why))}")

    def show(self, event: Event) -> None:
        """Print one event, if a person who watches wants to see it."""
        data = event.data
        match event.type.partition(".")[0]:
            case "node":
                self._show_node(event.type, data)
            case "stage":
                self._show_stage(event.type, data)
            case _:
                self._show_other(event.type, data)

    def _show_other(self, kind: str, data: Mapping[str, Any]) -> None:
        match kind:
            case "turn.added":
                self._show_turn(data)
            case "tool.result":
                mark = "[red]✗[/]" if data["failed"] else "[green]✓[/]"
                who = self._worker(data)
                self.console.print(f"  {mark} {who}[dim]{shown(_short(data['text']))}[/]")
                self._set_activity("thinking")
            case "agent.hired":
                self._show_hired(data)
            case "message.sent" if is_person(data["recipient"]) and data["kind"] == "message":
                self.console.print(f"[magenta]✉[/] {shown(data['text'])}")
                for act in data.get("acts") or ():
                    self.console.print(f"  [dim]\u2192 {shown(act)}[/]")
            case "model.failed" if data["reason"] != self.failure:
                self._show_failure(data["reason"])
            case _:
                pass

    def _show_turn(self, data: Mapping[str, Any]) -> None:
        self.turns += 1
        self.tokens += data["tokens"]
        self.usd += data["usd"] or 0.0
        self.unpriced = self.unpriced or data["usd"] is None
        who = self._agent(data["agent_id"])
        if data["text"].strip():
            self.console.print(f"[cyan]●[/] {who}{shown(_short(data['text']))}")
        for call in data["calls"]:
            subject = _short(str(next(iter(call["arguments"].values()), "")))
            self.console.print(f"  [dim]→[/] {who}{call['name']} [dim]{shown(subject)}[/]")
            self._set_activity(f"{call['name']} {subject}")

    def _show_hired(self, data: Mapping[str, Any]) -> None:
        self._names[data["agent_id"]] = data["name"]
        if data["role"] != "coordinator":
            kind = f"{data['role']}, {data['model']}"
            self.console.print(f"[blue]+[/] {shown(data['name'])} joins ({shown(kind)})")

    def _show_node(self, kind: str, data: Mapping[str, Any]) -> None:
        match kind:
            case "node.created" if data["parent_id"] is not None:
                self._names[data["node_id"]] = data["title"]
                title = shown(data["title"] or data["node_id"])
                self.console.print(f"[blue]◇[/] new task: {title}")
            case "node.started":
                self._names[data["node_id"]] = data["agent_id"]
                if data["attempt"] > 1:
                    again = f"attempt {data['attempt']}: continues after the interruption"
                    self.console.print(f"[yellow]↻[/] {again}")
            case "node.waiting" if data["reason"] != self.failure:
                who = self._worker(data)
                why = told_person(data["reason"])
                self.console.print(f"[yellow]…[/] {who}{shown(_line(why))}")
                self._set_activity(why)
            case "node.stalled":
                who = self._agent(data["agent_id"]) or "the worker "
                self.console.print(f"[yellow]![/] {who}has shown no progress for a while")
            case "node.output":
                text = shown(_short(data["text"]))
                self.console.print(f"  [dim]│[/] {self._worker(data)}[dim]{text}[/]")
            case "node.checkpoint":
                self.console.print(f"[cyan]▸[/] {shown(_short(data['summary']))}")
            case "node.partial":
                self._show_failure(data["result"].partition("\n")[0])  # what there is comes last
            case "node.failed" if data["result"] != self.failure:
                self._show_failure(data["result"])
            case _:
                pass

    def _show_stage(self, kind: str, data: Mapping[str, Any]) -> None:
        match kind:
            case "stage.started":
                self.console.print(f"[blue]▷[/] stage {shown(data['name'])} begins")
            case "stage.ended":
                how = data["status"].replace("_", " ")
                self.console.print(f"[blue]▣[/] stage {shown(data['name'])}: {how}")
            case "stage.reconvened":
                self.console.print(f"[blue]▣[/] {shown(_short(data['assessment']))}")
            case _:
                pass


# `agiraph tail`

EARLIER_EVENTS = 30
"""The number of earlier events that are shown first."""


@click.command()
@click.argument("team")
@click.option("--after", type=click.IntRange(0), help="Begin after the event with this number.")
@click.option("--no-follow", is_flag=True, help="Exit after the newest event.")
@click.option("--json", "json_", is_flag=True, help="Print one event a line, for programs.")
@command
async def tail(team: str, after: int | None, no_follow: bool, json_: bool) -> None:
    """Show the events of a TEAM (its id or name), live. Ctrl-C exits; the team keeps working.

    After a lost connection, the events continue where they stopped, without a gap.
    """
    async with connected() as client:
        found = await client.team(team)
        begin = max(0, found.head - EARLIER_EVENTS) if after is None else after
        frames = (
            _stored_events(client, found, begin) if no_follow else client.watch(found.id, begin)
        )
        async with contextlib.aclosing(frames):
            if json_:
                await _print_lines(frames)
            else:
                await _show(client, found, frames)


async def _stored_events(client: Client, team: TeamView, after: int) -> AsyncGenerator[Frame]:
    while page := await client.events(team.id, after=after):
        for event in page:
            yield event
        after = page[-1].seq
        if after >= team.head:
            return


async def _print_lines(frames: AsyncGenerator[Frame]) -> None:
    async for frame in frames:
        match frame:
            case Event():
                click.echo(orjson.dumps(frame).decode())
            case Resync():
                click.echo(
                    f"agiraph: some events were skipped; continuing at event {frame.head}", err=True
                )
            case ReplyDelta() | ConnectionLost():
                pass


async def _show(client: Client, team: TeamView, frames: AsyncGenerator[Frame]) -> None:
    console = plain_console()
    with Progress(console, activity="watching") as progress:
        for agent in await client.agents(team.id, all=True):
            progress.add_name(agent.id, agent.name)
        async for frame in _without_copies(frames):
            match frame:
                case Event():
                    _print_event(console, frame)
                    progress.show(frame)
                case ReplyDelta():
                    progress.show_delta(frame.text)
                case ConnectionLost():
                    console.print(CONNECTION_LOST)
                case Resync():
                    console.print(
                        f"[yellow]![/] some events were skipped; continuing at event {frame.head}"
                    )


async def _without_copies(frames: AsyncGenerator[Frame]) -> AsyncGenerator[Frame]:
    """Yield a broadcast once: it is a message for each member, all sent at the same moment."""
    last: object = None
    async for frame in frames:
        if isinstance(frame, Event) and frame.type == "message.sent":
            said = (frame.at, frame.data["sender"], frame.data["text"])
            if said == last:
                continue
            last = said
        yield frame


def _print_event(console: Console, event: Event) -> None:
    """Print messages, questions and changes of the team; `Progress` prints the work itself."""
    data = event.data
    match event.type:
        case "message.sent" if is_person(data["sender"]):
            console.print(f"[green]you[/] {shown(data['text'])}")
        case "message.sent" if is_person(data["recipient"]) and data["kind"] != "message":
            console.print(f"[magenta]✉[/] {data['kind']}: {shown(data['text'])}")
        case "reply.act_undone":
            console.print(f"[green]you[/] [dim]\u2192 {shown(data['text'])}[/]")
        case "question.asked":
            console.print(f"[bold yellow]?[/] {escape(visible(data['text']))}")
            is_approval = data["kind"] == "approval"
            if is_approval:  # a decision needs the whole call, not the tool's name alone
                console.print("  [dim]agiraph inbox --open shows the whole call[/]")
            answer = "approve|deny" if is_approval else '"TEXT"'
            console.print(f"  [dim]agiraph answer {data['message_id']} {answer}[/]")
        case "question.answered" if data.get("is_closed"):
            console.print(f"[dim]? {shown(data['text'])}[/]")
        case "question.answered":
            console.print(f"[green]you[/] {shown(data['decision'] or data['text'])}")
        case (
            "team.paused" | "team.resumed" | "team.stopped" | "team.completed"
            | "team.archived" | "team.deleted"
        ):  # fmt: skip
            console.print(f"[blue]■[/] the team is {event.type.removeprefix('team.')}")
        case "work.stopped" | "work.resumed":
            console.print(f"[blue]■[/] all work was {event.type.removeprefix('work.')}")
        case "team.restored":
            console.print("[blue]■[/] the team was taken out of the archive")
        case "team.changed":
            console.print("[blue]■[/] the team's settings were changed")
        case "trigger.fired":
            console.print("[blue]◷[/] a trigger fired")
        case _:
            pass


# A goal that a server works on

_MAY_END = frozenset(
    {"node.waiting", "node.completed", "node.partial", "node.failed", "node.cancelled",
     "question.asked", "team.stopped", "team.archived", "team.deleted"}
)  # fmt: skip
"""Event types after which the goal may be done, or may wait for an answer."""


class Remote:
    """Creates or resumes a team on the server, shows its progress and asks its questions here."""

    def __init__(self, client: Client, console: Console, home: Path) -> None:
        self.client: Client = client
        self.console: Console = console
        self._home = home
        self.progress: Progress = Progress(console)
        self.shown_up_to: int = 0
        """The number of the newest event that was shown."""
        self._stopped = asyncio.Event()

    async def begin(self, goal: str, settings: NewTeam) -> int:
        return await self.watch(await self.client.create_team(goal, **settings))

    async def resume(self, name: str, model: str | None) -> int:
        team = await self.client.team(name)
        if model is not None:
            team = await self.client.change_team(team.id, model=model)
        if team.status == "paused":
            team = await self.client.resume(team.id)
        return await self.watch(team, after=team.head)

    async def watch(self, team: TeamView, *, after: int = 0) -> int:
        """Show progress until the goal's node ends or waits for a person. Return the exit code."""
        self.shown_up_to = after
        [coordinator, *_] = await self.client.agents(team.id)
        asking.greet(self.console, team.name, team.id, coordinator.model)
        asking.catch_interrupt(self._stopped)
        with self.progress:
            watching = asyncio.create_task(self._until_over(team, after))
            stopping = asyncio.create_task(self._stopped.wait())
            await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if self._stopped.is_set():
                watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        return await self.close(team)

    async def _until_over(self, team: TeamView, after: int) -> None:
        async with contextlib.aclosing(self.client.watch(team.id, after)) as frames:
            # An end that falls between this check and the connection is not missed: the server
            # replays all events after `after`.
            if await self._is_over(team):
                return
            async for frame in frames:
                self._show(frame)
                may_end = isinstance(frame, Event) and frame.type in _MAY_END
                if may_end and await self._is_over(team):
                    return

    def _show(self, frame: Frame) -> None:
        match frame:
            case Event():
                self.progress.show(frame)
                self.shown_up_to = frame.seq
            case ReplyDelta():
                self.progress.show_delta(frame.text)
            case ConnectionLost():
                self.console.print(CONNECTION_LOST)
            case _:
                pass

    async def _is_over(self, team: TeamView) -> bool:
        """Return whether the goal's node has ended, or waits for an answer nobody gives here."""
        root = await self._root(team)
        if root is None or root.status.is_final:
            return True
        if root.status is not NodeStatus.WAITING:
            return False
        for question in await self.questions(team):
            answer = await asking.ask(self.progress, question, self._stopped)
            if answer is None:
                return True
            text, decision = answer
            # Somebody may have answered elsewhere meanwhile: the first answer counts.
            with contextlib.suppress(Refused):
                await self.client.answer(question.id, text, decision=decision)
        return False

    async def _root(self, team: TeamView) -> NodeView | None:
        board = await self.client.board(team.id)
        return next((node for node in board if node.parent_id is None), None)

    async def questions(self, team: TeamView) -> list[MessageView]:
        def is_open(item: InboxItem) -> bool:
            return item.needs_answer and item.message.team_id == team.id

        return [i.message for i in await everything(self.client) if is_open(i)]

    async def close(self, team: TeamView) -> int:
        root, bill = await self._root(team), self.progress.bill
        if root is not None and root.status.is_final:
            detail = await self.client.node(root.id)
            return asking.print_end(self.console, bill, root, self._files(detail))
        self.print_next(team, await self.questions(team), bill)
        return 130 if self._stopped.is_set() else 1

    def print_next(self, team: TeamView, questions: Sequence[MessageView], bill: str) -> None:
        """Print what a person can do about a goal that has not ended."""
        self.console.print(
            f"\n[bold yellow]Not done yet.[/] The team keeps working. [dim]{bill}[/]"
        )
        asking.print_questions(self.console, questions)
        self.console.print(f"Watch it with: agiraph tail {team.id}")
        self.console.print(f"Stop it with: agiraph stop {team.id}")

    def _files(self, node: NodeDetail) -> list[str]:
        """Return the published files; as paths of this machine if the server's home is here."""
        folder = self._home / "teams" / node.team_id
        if not folder.is_dir():
            folder = Path()
        return [str(folder / f"nodes/{node.id}/published/{name}") for name in sorted(node.manifest)]
