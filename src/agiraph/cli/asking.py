"""Asking: an agent's questions and approvals at a terminal, literal; the end of a goal."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from rich.console import Console
from rich.text import Text

from agiraph.api.views import MessageView, NodeView, ToolCallView
from agiraph.cli.session import clean, shown
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.messages import Decision, option_with_number
from agiraph.core.domain.text.visible import call_lines, visible
from agiraph.core.domain.work import NodeStatus, StopReason

# Only these words decide. A sentence such as "yesterday it worked" must never approve a call.
DECISIONS: dict[str, Decision] = {
    "approve": "approve", "yes": "approve", "y": "approve",
    "deny": "deny", "no": "deny", "n": "deny",
}  # fmt: skip


def decide(question: MessageView, text: str) -> tuple[str, Decision | None]:
    """Return the answer's text, an option for its number, and the decision if the question is an
    approval."""
    if question.kind != "approval":
        if not text.strip():
            raise Refused("The answer is empty: write a text.")
        return option_with_number(question.options, text) or text, None
    word, _, note = text.strip().partition(" ")
    decision = DECISIONS.get(word.lower())
    if decision is None:
        raise Refused(
            f"{question.id} asks for approval: answer `approve` or `deny`, with a note if you like."
        )
    return note.strip(), decision


def literal(text: str) -> Text:
    """Return text of agents without markup and with hidden characters shown. Print it with
    `soft_wrap`."""
    return Text(visible(text))


def question_lines(
    question: MessageView, width: int, *, before: Text, indent: str = "  "
) -> list[Text]:
    """Return the lines of a question: its text, the complete call it is about, and its options."""
    lines = [before + literal(question.text)]
    if question.call is not None:
        lines += call_text(question.call, width, indent=indent)
    listed = enumerate(question.options, 1)
    lines += [Text(f"    {number}. ") + literal(option) for number, option in listed]
    return lines


def deadline(until: datetime | None) -> str:
    """Return how long a question waits, for a person; empty if it waits as long as it takes."""
    return (
        ""
        if until is None
        else f"Waits until {until:%Y-%m-%d %H:%M} UTC, then goes on without your answer."
    )


def call_text(call: ToolCallView, width: int, *, indent: str = "  ") -> list[Text]:
    """Return the lines of a call, none wider than the terminal. A wrapped line of an argument could
    imitate a line of our own."""
    lines = call_lines(call.name, call.arguments, width=max(width - len(indent), 20))
    # They hold code points already; a second time would escape the signs around these.
    return [Text(indent + line) for line in lines]


LINE_BYTES = 64 * 1024
"""The longest answer that is read."""


def greet(console: Console, name: str, team_id: str, model: str) -> None:
    console.print(f"[bold]{shown(name)}[/] [dim]{team_id}[/]")
    if model == "demo":
        console.print(
            "[dim]A scripted demo answers, not an AI. To use an AI, set ANTHROPIC_API_KEY, "
            "OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY or AGIRAPH_MODEL.[/]"
        )


def catch_interrupt(stopped: asyncio.Event, *others: asyncio.Event) -> None:
    """Set the events on Ctrl-C or SIGTERM. A second signal ends the process at once: the journal on
    disk is complete at any time."""

    def stop() -> None:
        if stopped.is_set():
            # No cleanup on purpose: whatever hangs would hang there too.
            os._exit(130)
        for event in (stopped, *others):
            event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)


async def typed_line(stopped: asyncio.Event) -> str | None:
    """Return the typed line; None after Ctrl-C or Ctrl-D. A thread that reads could not be
    interrupted, so the event loop waits for the terminal."""
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    typed = asyncio.Event()
    waits = [asyncio.create_task(event.wait()) for event in (typed, stopped)]
    loop.add_reader(terminal, typed.set)
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(terminal)
        for wait in waits:
            wait.cancel()
    line = os.read(terminal, LINE_BYTES) if typed.is_set() else b""
    return line.decode(errors="replace").strip() if line else None


class Pausable(Protocol):
    """What is shown on the terminal, and makes room for a question."""

    @property
    def console(self) -> Console: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


async def ask(
    progress: Pausable,
    question: MessageView,
    stopped: asyncio.Event,
) -> tuple[str, Decision | None] | None:
    """Ask a question; return the answer that is typed, and its decision. None without a terminal,
    after Ctrl-C and after Ctrl-D."""
    if not sys.stdin.isatty():
        return None
    console = progress.console
    progress.pause()
    sign = Text.from_markup("\n[bold yellow]?[/] ")
    for line in question_lines(question, console.width, before=sign):
        console.print(line, soft_wrap=True)
    if waits := deadline(question.waits_until):
        console.print(f"  [dim]{waits}[/]")
    while True:
        console.print("  your answer: ", end="")
        if (line := await typed_line(stopped)) is None:
            return None
        try:
            answer = decide(question, line)
        except Refused as error:
            console.print(f"[red]{shown(str(error))}[/]")
            continue
        progress.resume()
        return answer


DONE_WITH_DOUBTS = 3
"""The exit code of a goal that was reached, with something that could not be confirmed."""


def extending(goal: NodeView) -> str:
    """Return the command that lets a partial goal go on, with the limit that it needs."""
    amounts = {
        StopReason.TOKENS_SPENT: "--tokens 1000000",
        StopReason.MONEY_SPENT: "--budget 5",
        StopReason.TIME_SPENT: "--seconds 3600",
    }
    more = amounts.get(goal.stop_reason or StopReason.TURNS_SPENT, "--turns 50")
    return f"agiraph extend {goal.id} {more}"


def print_end(console: Console, bill: str, goal: NodeView, files: Sequence[str]) -> int:
    """Print how a goal ended, its result and its files. Return the exit code."""
    if goal.status is NodeStatus.COMPLETED:
        if goal.doubts:
            console.print(f"\n[bold yellow]Done, with doubts.[/] [dim]{bill}[/]\n")
            console.print(f"Not confirmed: {clean(goal.doubts)}\n", markup=False)
        else:
            console.print(f"\n[bold green]Done.[/] [dim]{bill}[/]\n")
        console.print(clean(goal.result or ""), markup=False)
        for name in files:
            console.print(f"[dim]{shown(name)}[/]")
        return DONE_WITH_DOUBTS if goal.doubts else 0
    is_partial = goal.status is NodeStatus.PARTIAL
    how = "Partial result" if is_partial else "The goal was not reached"
    why = f": {goal.stop_reason.words}" if goal.stop_reason else ""
    console.print(f"\n[bold red]{how}[/]{why}. [dim]{bill}[/]\n")
    console.print(clean(goal.result or ""), markup=False)
    if is_partial:
        for name in files:
            console.print(f"[dim]{shown(name)}[/]")
        console.print(f"Let it go on with: {extending(goal)}")
    return 1


def print_questions(console: Console, questions: Sequence[MessageView]) -> None:
    for question in questions:
        lines = question_lines(question, console.width, before=Text("It asks: "))
        for line in lines if question.call is not None else lines[:1]:
            console.print(line, soft_wrap=True)
        console.print(f'Answer with: agiraph answer {question.id} "TEXT"')
