"""`agiraph run`: one finite team from goal to result, in the terminal."""

import asyncio
import contextlib
import signal
import sys

import click
from rich.console import Console
from rich.markup import escape

from agiraph import config
from agiraph.app import Runtime
from agiraph.cli.inbox import decide
from agiraph.cli.progress import Progress
from agiraph.cli.session import command
from agiraph.config import Settings
from agiraph.domain.errors import Refused
from agiraph.domain.ids import TeamId
from agiraph.domain.messages import Message
from agiraph.domain.people import Team
from agiraph.domain.work import Budget, NodeStatus, WorkNode
from agiraph.services import journal, teams
from agiraph.store import messages, nodes
from agiraph.store import teams as rows
from agiraph.store.tx import Aftermath


@click.command()
@click.argument("goal", required=False)
@click.option("--model", help="provider/model; `demo` needs no key. [env: AGIRAPH_MODEL]")
@click.option("--resume", metavar="TEAM", help="Go on with a team that was cut off or waits.")
@click.option("--turns", type=click.IntRange(1), default=50, show_default=True, help="At most.")
@click.option("--tokens", type=click.IntRange(1), help="At most, in and out together.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="At most.")
@command
async def run(
    goal: str | None,
    model: str | None,
    resume: str | None,
    turns: int,
    tokens: int | None,
    minutes: float | None,
) -> None:
    """Work on a GOAL until it is reached, and show how it goes.

    Exit code 0 means the goal was reached. Stop with Ctrl-C: nothing is lost, and --resume goes on.
    """
    if (goal is None) == (resume is None):
        raise click.UsageError('Say what you want: agiraph run "GOAL", or go on: --resume TEAM.')
    settings = config.load()
    budget = Budget(turns=turns, tokens=tokens, seconds=None if minutes is None else minutes * 60)
    console = Console(highlight=False)
    code = await Run(settings, console).go(goal, model or settings.model, resume, budget)
    raise click.exceptions.Exit(code)


class Run:
    """One run in a terminal."""

    def __init__(self, settings: Settings, console: Console) -> None:
        self._settings = settings
        self._console = console
        self._progress = Progress(console)
        self._changed = asyncio.Event()
        self._stopped = False

    async def go(self, goal: str | None, model: str, resume: str | None, budget: Budget) -> int:
        runtime = await Runtime.open(
            self._settings.home,
            database_url=self._settings.database_url,
            keys=self._settings.keys,
            on_delta=lambda _, words: self._progress.said(words),
        )
        try:
            runtime.registry.resolve(model)  # a wrong name is told before anything is begun
            runtime.store.subscribe(self._notice)
            self._catch_interrupt()
            if resume is not None:
                team = await runtime.store.read(rows.find, resume)
            else:
                founded = await runtime.store.write(
                    teams.found, goal=goal or "", model=model, budget=budget
                )
                team = founded.team
            self._greet(team, model)
            await runtime.engine.start()
            with self._progress:
                root = await self._watch(runtime, team.id)
            return self._close(runtime, team, root)
        finally:
            await runtime.close()

    def _greet(self, team: Team, model: str) -> None:
        self._console.print(f"[bold]{escape(team.name)}[/] [dim]{team.id}[/]")
        if model == "demo":
            self._console.print(
                "[dim]No model is set, so the scripted demo answers: it is not an AI. "
                "Set OPENAI_API_KEY or OPENAI_BASE_URL and AGIRAPH_MODEL=openai/… for one.[/]"
            )

    def _catch_interrupt(self) -> None:
        def stop() -> None:
            self._stopped = True
            self._changed.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop)

    def _notice(self, aftermath: Aftermath) -> None:
        for event in aftermath.events:
            self._progress.show(event)
        self._changed.set()

    async def _watch(self, runtime: Runtime, team_id: TeamId) -> WorkNode:
        """Wait until the goal's node is done, answering questions if somebody sits here."""
        while True:
            self._changed.clear()
            board = await runtime.store.read(nodes.board, team_id)
            root = board[0]
            if root.status.is_final or self._stopped:
                return root
            if root.status is NodeStatus.WAITING:
                questions = await runtime.store.read(messages.open_questions, team_id)
                if questions and not sys.stdin.isatty():
                    return root
                for question in questions:
                    await self._ask(runtime, question)
            await self._changed.wait()

    async def _ask(self, runtime: Runtime, question: Message) -> None:
        self._progress.pause()
        self._console.print(f"\n[bold yellow]?[/] {escape(question.text)}")
        for option in question.options:
            self._console.print(f"    - {escape(option)}")
        while True:
            line = await asyncio.to_thread(input, "  your answer: ")
            try:
                text, decision = decide(question, line)
                if not line.strip():
                    continue
            except Refused as error:
                self._console.print(f"[red]{error}[/]")
                continue
            break
        self._progress.go_on()
        # Somebody may have answered elsewhere meanwhile; theirs stands then.
        with contextlib.suppress(Refused):
            await runtime.store.write(journal.answer_question, question.id, text, decision=decision)

    def _close(self, runtime: Runtime, team: Team, root: WorkNode) -> int:
        console, bill = self._console, self._progress.bill
        if root.status is NodeStatus.COMPLETED:
            console.print(f"\n[bold green]Done.[/] [dim]{bill}[/]\n")
            console.print(root.result or "", markup=False)
            folder = runtime.home.node_path(team.id, root.id) / "published"
            for name in sorted(root.manifest):
                console.print(f"[dim]{folder / name}[/]", soft_wrap=True)
            return 0
        if root.status.is_final:
            console.print(f"\n[bold red]Not reached[/] ({root.stop_reason}). [dim]{bill}[/]\n")
            console.print(root.result or "", markup=False)
            return 1
        again = f"agiraph run --resume {team.id}"
        console.print(f"\n[bold yellow]Not done yet.[/] Nothing is lost. [dim]{bill}[/]")
        if root.waiting_reason and not self._stopped:
            console.print(f"It waits: {escape(root.waiting_reason)}")
            console.print("Answer with: agiraph answer ID TEXT (agiraph inbox --open shows the id)")
        console.print(f"Go on with: {again}")
        return 130 if self._stopped else 1
