"""Terminal: asking whoever sits at it, and telling them how a goal ended."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.text import Text

from agiraph.cli.progress import Progress
from agiraph.cli.questions import Question, asked, decide
from agiraph.cli.session import clean, shown
from agiraph.domain.errors import Refused
from agiraph.domain.messages import Decision
from agiraph.domain.work import NodeStatus, StopReason

LINE = 64 * 1024
"""The longest line that is read at the prompt."""


def greet(console: Console, name: str, team_id: str, model: str) -> None:
    console.print(f"[bold]{shown(name)}[/] [dim]{team_id}[/]")
    if model == "demo":
        console.print(
            "[dim]The scripted demo answers: it is not an AI. For one, set ANTHROPIC_API_KEY, "
            "OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY, or AGIRAPH_MODEL.[/]"
        )


def catch_interrupt(stopped: asyncio.Event, *others: asyncio.Event) -> None:
    """Let Ctrl-C set these; a second one ends the process, as the journal has all there is."""

    def stop() -> None:
        if stopped.is_set():
            os._exit(130)
        for event in (stopped, *others):
            event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)


async def typed_line(stopped: asyncio.Event) -> str | None:
    """What is typed; None after Ctrl-C or Ctrl-D. No thread, which nothing could interrupt."""
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
    line = os.read(terminal, LINE) if typed.is_set() else b""
    return line.decode(errors="replace").strip() if line else None


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    decision: Decision | None


async def ask(progress: Progress, question: Question, stopped: asyncio.Event) -> Answer | None:
    """What whoever sits here answers; None if nobody does."""
    if not sys.stdin.isatty():
        return None
    console = progress.console
    progress.pause()
    sign = Text.from_markup("\n[bold yellow]?[/] ")
    for line in asked(question, console.width, before=sign):
        console.print(line, soft_wrap=True)
    while True:
        console.print("  your answer: ", end="")
        if (line := await typed_line(stopped)) is None:
            return None
        try:
            text, decision = decide(question, line)
        except Refused as error:
            console.print(f"[red]{shown(str(error))}[/]")
            continue
        progress.resume()
        return Answer(text, decision)


class Goal(Protocol):
    """The node a goal was worked on in."""

    @property
    def team_id(self) -> str: ...
    @property
    def status(self) -> NodeStatus: ...
    @property
    def stop_reason(self) -> StopReason | None: ...
    @property
    def result(self) -> str | None: ...


def tell_end(console: Console, bill: str, goal: Goal, files: Sequence[str]) -> int:
    """How a goal ended, and what there is to show for it; the exit code for that."""
    if goal.status is NodeStatus.COMPLETED:
        console.print(f"\n[bold green]Done.[/] [dim]{bill}[/]\n")
        console.print(clean(goal.result or ""), markup=False)
        for name in files:
            console.print(f"[dim]{shown(name)}[/]")
        return 0
    console.print(f"\n[bold red]Not reached[/] ({goal.stop_reason}). [dim]{bill}[/]\n")
    console.print(clean(goal.result or ""), markup=False)
    return 1


def tell_questions(console: Console, questions: Sequence[Question]) -> None:
    for question in questions:
        lines = asked(question, console.width, before=Text("It asks: "))
        for line in lines if question.call is not None else lines[:1]:
            console.print(line, soft_wrap=True)
        console.print(f'Answer with: agiraph answer {question.id} "TEXT"')
