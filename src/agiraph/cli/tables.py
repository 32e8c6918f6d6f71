"""Tables: teams, tasks, agents, inbox, triggers and costs as tables for a terminal."""

from collections.abc import Sequence
from textwrap import shorten
from typing import Any

from rich.markup import escape
from rich.table import Column, Table
from rich.tree import Tree

from agiraph.api.views import AgentView, InboxItem, NodeView, TeamView, TriggerView
from agiraph.cli.questions import deadline
from agiraph.cli.session import clean, shown
from agiraph.domain.costs import CostSum, NodeCosts, TeamCosts
from agiraph.domain.knowledge import Insight, Memory
from agiraph.domain.labels import Label
from agiraph.domain.moments import local
from agiraph.domain.plurals import counted
from agiraph.domain.visible import visible
from agiraph.domain.waits import told_person
from agiraph.domain.work import NodeStatus

_STATUS = {
    "active": "green",
    "running": "green",
    "working": "green",
    "waiting": "yellow",
    "waiting_for_you": "bold yellow",
    "paused": "yellow",
    "partial": "yellow",
    "failed": "red",
}


def coloured(status: str) -> str:
    """Return a status as words with markup for its colour."""
    words = status.replace("_", " ")
    return f"[{_STATUS[status]}]{words}[/]" if status in _STATUS else words


def of_teams(teams: list[TeamView]) -> Table:
    table = Table(
        Column("id", no_wrap=True),
        "name",
        Column("status", no_wrap=True),
        "questions",
        "cost",
        box=None,
    )
    for team in teams:
        table.add_row(
            team.id,
            shown(team.name),
            coloured("waiting_for_you" if team.waits_for_you else team.status),
            f"[bold yellow]{team.open_questions}[/]" if team.open_questions else "",
            f"${team.usd:.4f}",
        )
    return table


def of_board(work: list[NodeView]) -> Table:
    table = Table(Column("task", no_wrap=True), "title", "agent", "status", "", box=None)
    for node in work:
        note = told_person(node.waiting_reason or "") or shorten(
            (node.result or "").partition("\n")[0], 80, placeholder="…"
        )
        if node.status in (NodeStatus.PARTIAL, NodeStatus.FAILED) and node.stop_reason:
            why = node.stop_reason.words
            note = f"{why}: {note}" if note else why
        table.add_row(
            node.id,
            "  " * node.depth + shown(node.title),
            shown(node.assignee or ""),
            coloured(node.status) + (", with doubts" if node.doubts else ""),
            shown(note),
        )
    return table


def of_agents(agents: list[AgentView]) -> Table:
    table = Table(
        Column("name", no_wrap=True), "role", "model", Column("status", no_wrap=True), "task",
        Column("thread", overflow="fold"), Column("id", no_wrap=True), box=None,
    )  # fmt: skip
    for agent in agents:
        table.add_row(
            shown(agent.name),
            shown(agent.role),
            shown(agent.command if agent.command is not None else agent.model),
            coloured(agent.status),
            shown(agent.node_title),
            agent.thread_id or "",
            agent.id,
        )
    return table


def of_inbox(items: list[InboxItem]) -> Table:
    table = Table(Column("id", no_wrap=True), "kind", "state", "text", box=None)
    for item in items:
        message = item.message
        state = "open" if item.needs_answer else item.state
        said = message.title if message.kind == "briefing" else message.text
        lost = [d.channel for d in item.deliveries if d.status == "failed"]
        note = f" [red](not delivered: {shown(', '.join(lost))})[/]" if lost else ""
        if waits := deadline(message.waits_until):
            note += f" [dim]({waits})[/]"
        if message.sources:
            note += f" [yellow](holds words of {shown(str(Label(tuple(message.sources))))})[/]"
        style = "bold" if item.state == "unread" else None
        # A person decides by this text: nothing in it may be hidden.
        text = escape(visible(said)) if item.needs_answer else shown(said)
        if message.title and message.kind in ("result", "failure", "report"):
            text = f"[dim]{shown(message.title)}[/]\n{text}"
        table.add_row(message.id, ending_text(item), state, text + note, style=style)
    return table


def ending_text(item: InboxItem) -> str:
    """Return the kind of an inbox item in words; of an end, also what became of the task."""
    match item.message.kind, item.node_status:
        case "failure", NodeStatus.PARTIAL:
            return "partial result"
        case "failure", NodeStatus.COMPLETED:
            return "done since"
        case "failure", NodeStatus() as status if not status.is_final:
            return "goes on"
        case "result", _ if item.doubts:
            return "done, with doubts"
        case kind, _:
            return kind


def of_knowledge(known: Sequence[Memory | Insight]) -> Table:
    table = Table(Column("id", no_wrap=True), "kind", "since", "status", "what", box=None)
    for item in known:
        table.add_row(
            item.id,
            item.type if isinstance(item, Insight) else "memory",
            f"{item.created_at:%Y-%m-%d}",
            coloured(item.status),
            shown(item.content),
        )
    return table


def of_triggers(triggers: list[TriggerView]) -> Table:
    table = Table(
        Column("id", no_wrap=True),
        "type",
        "status",
        Column("due", min_width=10),  # a whole date
        "fired",
        "skipped",
        "what",
        box=None,
    )
    for trigger in triggers:
        due = f"{local(trigger.due_at, trigger.zone):%Y-%m-%d %H:%M %Z}" if trigger.due_at else ""
        table.add_row(
            trigger.id,
            trigger.type,
            coloured(trigger.status),
            due + (" [red]overdue[/]" if trigger.is_overdue else ""),
            _fired(trigger),
            str(trigger.skipped),
            shown(_words(trigger.payload)[:60]),
        )
    return table


def _fired(trigger: TriggerView) -> str:
    quiet = trigger.nothing_to_do
    return f"{trigger.fired} ({quiet} with nothing to do)" if quiet else str(trigger.fired)


def _words(payload: dict[str, Any]) -> str:
    """Return what a trigger does, in the words of its creator."""
    return next(
        (str(payload[key]) for key in ("task", "question", "content") if payload.get(key)), ""
    )


def of_cost(name: str, costs: TeamCosts) -> Tree:
    tree = Tree(f"[bold]{shown(name)}[/] [dim]{costs.team_id}[/]  {sum_text(costs.total)}")
    for bill in costs.runs:
        _branch(tree, bill)
    return tree


def _branch(tree: Tree, bill: NodeCosts) -> None:
    branch = tree.add(f"{shown(bill.title)} [dim]{shown(bill.agent)}[/]  {sum_text(bill.total)}")
    if len(bill.lines) > 1 or any(line.purpose != "work" for line in bill.lines):
        for line in bill.lines:
            branch.add(f"[dim]{line.purpose} · {shown(line.model)}[/]  {sum_text(line.sum)}")
    for below in bill.below:
        _branch(branch, below)


def sum_text(total: CostSum) -> str:
    """Return a sum as text. Calls without a known price are counted, not estimated."""
    tokens = total.input_tokens + total.output_tokens
    calls = counted(total.calls + total.lost, "call")
    words = f"${total.usd:.4f} · {counted(tokens, 'token')} · {calls}"
    if total.searches:
        words += f" · {counted(total.searches, 'search', 'searches')}"
    if total.cached_tokens:
        words += f" · {total.cached_tokens / total.input_tokens:.0%} of input cached"
    if total.estimated:
        words += f" · {total.estimated} estimated"
    if total.lost:
        words += f" · {counted(total.lost, 'lost call')} of them, charged as reserved"
    if total.unpriced:
        words += f" · {total.unpriced} without a known price"
    return clean(words)
