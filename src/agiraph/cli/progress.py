"""Progress: a team's events as lines of a terminal; `agiraph tail`; a goal on a server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import click
import orjson
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner

from agiraph.cli.session import CONNECTION_LOST, command, connected, plain_console, shown
from agiraph.client import Client, ConnectionLost, Frame, ReplyDelta, Resync
from agiraph.core.domain.events import Event
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.text.visible import visible
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import told_person

if TYPE_CHECKING:
    from agiraph.api.views import TeamView

WIDTH = 100
STREAMED_WORDS = 12
"""The newest words of a reply that are shown while it is streamed."""


_LINES = {
    "node.output": "  [dim]│[/] {who}[dim]{text}[/]",
    "node.checkpoint": "[cyan]▸[/] {summary}",
    "stage.started": "[blue]▷[/] stage {name} begins",
    "stage.reconvened": "[blue]▣[/] {assessment}",
}
"""The lines of events that are always printed in the same way."""


def _line(text: str) -> str:
    return " ".join(text.split())


def short(text: str) -> str:
    """Return a text as one line, cut if it is long."""
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
    _streamed: dict[str, str] = field(default_factory=dict[str, str])
    """What came so far of each reply that is being streamed, by its thread."""
    _live: Live | None = field(default=None)

    def __enter__(self) -> Progress:
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

    def show_delta(self, thread_id: str, words: str) -> None:
        """Show the end of a reply that is being streamed, with the piece that has come now."""
        said = self._streamed[thread_id] = self._streamed.get(thread_id, "") + words
        self._set_activity(short("thinking: " + " ".join(said.split()[-STREAMED_WORDS:])))

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
        if event.type in _LINES:
            facts = {name: shown(short(str(told))) for name, told in data.items()}
            who = self._worker(data) if "node_id" in data else ""
            self.console.print(_LINES[event.type].format_map({**facts, "who": who}))
        elif event.type.startswith(("node.", "stage.")):
            self._show_node(event.type, data)
        else:
            self._show_other(event.type, data)

    def _show_other(self, kind: str, data: Mapping[str, Any]) -> None:
        match kind:
            case "turn.added":
                self._show_turn(data)
            case "tool.result":
                mark = "[red]✗[/]" if data["failed"] else "[green]✓[/]"
                who = self._worker(data)
                self.console.print(f"  {mark} {who}[dim]{shown(short(data['text']))}[/]")
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
        self._streamed.pop(data["thread_id"], None)
        self.turns += 1
        self.tokens += data["tokens"]
        self.usd += data["usd"] or 0.0
        self.unpriced = self.unpriced or data["usd"] is None
        who = self._agent(data["agent_id"])
        if data["text"].strip():
            self.console.print(f"[cyan]●[/] {who}{shown(short(data['text']))}")
        for call in data["calls"]:
            subject = short(str(next(iter(call["arguments"].values()), "")))
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
            case "node.partial":
                self._show_failure(data["result"].partition("\n")[0])  # what there is comes last
            case "node.failed" if data["result"] != self.failure:
                self._show_failure(data["result"])
            case "stage.ended":
                how = data["status"].replace("_", " ")
                self.console.print(f"[blue]▣[/] stage {shown(data['name'])}: {how}")
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
                    progress.show_delta(frame.thread_id, frame.text)
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


_ENDS = ("paused", "resumed", "stopped", "completed", "archived", "deleted")
_OF_TEAM: dict[str, str] = {
    **{f"team.{end}": f"[blue]■[/] the team is {end}" for end in _ENDS},
    **{f"work.{end}": f"[blue]■[/] all work was {end}" for end in ("stopped", "resumed")},
    "team.restored": "[blue]■[/] the team was taken out of the archive",
    "team.changed": "[blue]■[/] the team's settings were changed",
    "trigger.fired": "[blue]◷[/] a trigger fired",
}


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
        case kind if kind in _OF_TEAM:
            console.print(_OF_TEAM[kind])
        case _:
            pass
