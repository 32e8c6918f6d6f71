"""Progress: what a team is doing, as a person in a terminal wants to see it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from agiraph.cli.session import shown
from agiraph.domain.events import Event

WIDTH = 100


def _line(text: str) -> str:
    return " ".join(text.split())


def _short(text: str) -> str:
    line = _line(text)
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def _subject(arguments: Mapping[str, Any]) -> str:
    return _short(str(next(iter(arguments.values()), "")))


@dataclass(slots=True)
class Progress:
    """Prints what happened line by line; on a terminal, what happens now stands below."""

    console: Console
    turns: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: bool = False
    doing: str = "starting"
    failure: str = ""
    """What went wrong last; it is told once."""
    _names: dict[str, str] = field(default_factory=dict[str, str])
    """Agents and nodes by their ids, for saying who does what."""
    _live: Live | None = field(default=None)

    def __enter__(self) -> "Progress":
        if self.console.is_terminal:
            self._live = Live(
                self._now(), console=self.console, transient=True, refresh_per_second=8
            )
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()

    def know(self, identity: str, name: str) -> None:
        """Who somebody is that joined before this began."""
        self._names[identity] = name

    def pause(self) -> None:
        """Clear the live line, to print a result or ask a question."""
        if self._live is not None:
            self._live.stop()

    def go_on(self) -> None:
        if self._live is not None:
            self._live.start()

    @property
    def bill(self) -> str:
        money = f"${self.usd:.4f}" + (" and calls without a known price" if self.unpriced else "")
        return f"{self.turns} turns · {self.tokens:,} tokens · {money}"

    def _now(self) -> Spinner:
        return Spinner("dots", text=f" {shown(self.doing)}  [dim]{self.bill}[/dim]")

    def said(self, words: str) -> None:
        """A piece of a reply, live."""
        self._do(_short("thinking: " + words))

    def _do(self, doing: str) -> None:
        self.doing = doing
        if self._live is not None:
            self._live.update(self._now())

    def _who(self, agent_id: str) -> str:
        """Who it is, where there is more than one."""
        name = self._names.get(agent_id, "")
        alone = sum(key.startswith("agent_") for key in self._names) < 2
        return "" if alone or not name else f"[b]{shown(name)}[/] "

    def _fail(self, why: str) -> None:
        """Whole, however long: what to do about it stands at its end."""
        self.failure = why
        self.console.print(f"[red]![/] {shown(_line(why))}")

    def show(self, event: Event) -> None:
        data = event.data
        match event.type:
            case "turn.added":
                self.turns += 1
                self.tokens += data["tokens"]
                self.usd += data["usd"] or 0.0
                self.unpriced = self.unpriced or data["usd"] is None
                who = self._who(data["agent_id"])
                if data["text"].strip():
                    self.console.print(f"[cyan]●[/] {who}{shown(_short(data['text']))}")
                for call in data["calls"]:
                    subject = shown(_subject(call["arguments"]))
                    self.console.print(f"  [dim]→[/] {who}{call['name']} [dim]{subject}[/]")
                    self._do(f"{call['name']} {_subject(call['arguments'])}")
            case "tool.result":
                mark = "[red]✗[/]" if data["failed"] else "[green]✓[/]"
                who = self._who(self._names.get(data["node_id"], ""))
                self.console.print(f"  {mark} {who}[dim]{shown(_short(data['text']))}[/]")
                self._do("thinking")
            case "agent.hired":
                self._names[data["agent_id"]] = data["name"]
                if data["role"] != "coordinator":
                    kind = f"{data['role']}, {data['model']}"
                    self.console.print(f"[blue]+[/] {shown(data['name'])} joins ({shown(kind)})")
            case "node.created" if data["parent_id"] is not None:
                self._names[data["node_id"]] = data["title"]
                self.console.print(
                    f"[blue]◇[/] new work: {shown(data['title'] or data['node_id'])}"
                )
            case "node.started":
                self._names[data["node_id"]] = data["agent_id"]
                if data["attempt"] > 1:
                    again = f"attempt {data['attempt']}: going on where it was"
                    self.console.print(f"[yellow]↻[/] {again}")
            case "node.waiting":
                who = self._who(self._names.get(data["node_id"], ""))
                self.console.print(f"[yellow]…[/] {who}{shown(_line(data['reason']))}")
                self._do(data["reason"])
            case "stage.started":
                self.console.print(f"[blue]▷[/] stage {shown(data['name'])} begins")
            case "stage.ended":
                how = data["status"].replace("_", " ")
                self.console.print(f"[blue]▣[/] stage {shown(data['name'])}: {how}")
            case "stage.reconvened":
                self.console.print(f"[blue]▣[/] {shown(_short(data['assessment']))}")
            case "node.stalled":
                who = self._who(data["agent_id"]) or "the worker "
                self.console.print(f"[yellow]![/] {who}nothing has come for a while")
            case "node.output":
                who = self._who(self._names.get(data["node_id"], ""))
                self.console.print(f"  [dim]│[/] {who}[dim]{shown(_short(data['text']))}[/]")
            case "node.checkpoint":
                self.console.print(f"[cyan]▸[/] {shown(_short(data['summary']))}")
            case "message.sent" if data["recipient"] == "human" and data["kind"] == "message":
                self.console.print(f"[magenta]✉[/] {shown(data['text'])}")
            case "model.failed":
                self._fail(data["reason"])
            case "node.failed" if data["result"] != self.failure:
                self._fail(data["result"])
            case _:
                pass
