"""Progress: a team's events as lines of a terminal, with the current activity below them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from agiraph.cli.session import shown
from agiraph.domain.events import Event
from agiraph.domain.persons import is_person
from agiraph.domain.plurals import counted
from agiraph.domain.waits import told_person

WIDTH = 100


def _line(text: str) -> str:
    return " ".join(text.split())


def _short(text: str) -> str:
    line = _line(text)
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def _first_argument(arguments: Mapping[str, Any]) -> str:
    return _short(str(next(iter(arguments.values()), "")))


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
            subject = shown(_first_argument(call["arguments"]))
            self.console.print(f"  [dim]→[/] {who}{call['name']} [dim]{subject}[/]")
            self._set_activity(f"{call['name']} {_first_argument(call['arguments'])}")

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
