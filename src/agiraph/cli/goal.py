"""Goal: a team's work on its goal at a terminal, with its progress, its questions and its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from agiraph.cli.asking import deadline, decide, question_lines
from agiraph.cli.inbox import everything
from agiraph.cli.progress import Progress
from agiraph.cli.session import CONNECTION_LOST, clean, shown
from agiraph.client import Client, ConnectionLost, Frame, ReplyDelta
from agiraph.client.teams import NewTeam
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events import Event
from agiraph.core.domain.messages import Decision
from agiraph.core.domain.records.doubts import as_text, sentences
from agiraph.core.domain.work import NodeStatus, StopReason

if TYPE_CHECKING:
    from agiraph.api.views import InboxItem, MessageView, NodeDetail, NodeView, TeamView

LINE_BYTES = 64 * 1024
"""The longest answer that is read."""
DONE_WITH_DOUBTS = 3
"""The exit code of a goal that was reached, with something that could not be confirmed."""
_MAY_END = frozenset(
    {"node.waiting", "node.completed", "node.partial", "node.failed", "node.cancelled",
     "question.asked", "team.stopped", "team.archived", "team.deleted"}
)  # fmt: skip
"""Event types after which the goal may be done, or may wait for an answer."""
_MORE = {
    StopReason.TOKENS_SPENT: "--tokens 1000000",
    StopReason.MONEY_SPENT: "--budget 5",
    StopReason.TIME_SPENT: "--seconds 3600",
}
"""The limit that lets a partial goal go on; for all others, turns."""
_DEMO = (
    "A scripted demo answers, not an AI. To use an AI, set ANTHROPIC_API_KEY, OPENAI_API_KEY, "
    "GEMINI_API_KEY, OPENROUTER_API_KEY or AGIRAPH_MODEL."
)


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
        self.console.print(f"[bold]{shown(team.name)}[/] [dim]{team.id}[/]")
        if coordinator.model == "demo":
            self.console.print(f"[dim]{_DEMO}[/]")
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._stop)
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

    def _stop(self) -> None:
        """End on Ctrl-C or SIGTERM. A second signal ends the process at once: the journal on disk
        is complete at any time."""
        if self._stopped.is_set():
            # No cleanup on purpose: whatever hangs would hang there too.
            os._exit(130)
        self._stopped.set()

    async def _until_over(self, team: TeamView, after: int) -> None:
        async with contextlib.aclosing(self.client.watch(team.id, after)) as frames:
            # The team may end between this check and the connection. That is not missed: the
            # server sends all events after `after` again.
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
                self.progress.show_delta(frame.thread_id, frame.text)
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
            answer = await self._ask(question)
            if answer is None:
                return True
            text, decision = answer
            # Somebody may have answered elsewhere meanwhile: the first answer counts.
            with contextlib.suppress(Refused):
                await self.client.answer(question.id, text, decision=decision)
        return False

    async def _ask(self, question: MessageView) -> tuple[str, Decision | None] | None:
        """Ask a question; return the answer that is typed, and its decision. None without a
        terminal, after Ctrl-C and after Ctrl-D."""
        if not sys.stdin.isatty():
            return None
        self.progress.pause()
        sign = Text.from_markup("\n[bold yellow]?[/] ")
        for line in question_lines(question, self.console.width, before=sign):
            self.console.print(line, soft_wrap=True)
        if waits := deadline(question.waits_until):
            self.console.print(f"  [dim]{waits}[/]")
        while True:
            self.console.print("  your answer: ", end="")
            if (line := await self._typed_line()) is None:
                return None
            try:
                answer = decide(question, line)
            except Refused as error:
                self.console.print(f"[red]{shown(str(error))}[/]")
                continue
            self.progress.resume()
            return answer

    async def _typed_line(self) -> str | None:
        """Return the typed line; None after Ctrl-C or Ctrl-D. A thread that reads could not be
        interrupted, so the event loop waits for the terminal."""
        loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
        typed = asyncio.Event()
        waits = [asyncio.create_task(event.wait()) for event in (typed, self._stopped)]
        loop.add_reader(terminal, typed.set)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            loop.remove_reader(terminal)
            for wait in waits:
                wait.cancel()
        line = os.read(terminal, LINE_BYTES) if typed.is_set() else b""
        return line.decode(errors="replace").strip() if line else None

    async def _root(self, team: TeamView) -> NodeView | None:
        board = await self.client.board(team.id)
        return next((node for node in board if node.parent_id is None), None)

    async def questions(self, team: TeamView) -> list[MessageView]:
        def is_open(item: InboxItem) -> bool:
            concerns = (item.message.team_id, *item.waiting_teams)
            return item.needs_answer and team.id in concerns

        return [i.message for i in await everything(self.client) if is_open(i)]

    async def close(self, team: TeamView) -> int:
        """Print how the goal ended, or what a person can do about it. Return the exit code."""
        root = await self._root(team)
        if root is not None and root.status.is_final:
            return self._print_end(root, self._files(await self.client.node(root.id)))
        self.print_next(team, await self.questions(team))
        return 130 if self._stopped.is_set() else 1

    def _print_end(self, goal: NodeView, files: Sequence[str]) -> int:
        """Print how a goal ended, its result and its files. Return the exit code."""
        console, bill = self.console, f"[dim]{self.progress.bill}[/]"
        is_done, is_partial = goal.status is NodeStatus.COMPLETED, goal.status is NodeStatus.PARTIAL
        if is_done and goal.doubts:
            console.print(f"\n[bold yellow]Done, with doubts.[/] {bill}\n")
        elif is_done:
            console.print(f"\n[bold green]Done.[/] {bill}\n")
        else:
            how = "Partial result" if is_partial else "The goal was not reached"
            why = f": {goal.stop_reason.words}" if goal.stop_reason else ""
            console.print(f"\n[bold red]{how}[/]{why}. {bill}\n")
        console.print(clean(goal.result or ""), markup=False)
        if goal.doubts:
            console.print(f"\n{clean(as_text(sentences(goal.doubts)))}", markup=False)
        for name in files if is_done or is_partial else ():
            console.print(f"[dim]{shown(name)}[/]")
        if is_partial:
            more = _MORE.get(goal.stop_reason or StopReason.TURNS_SPENT, "--turns 50")
            console.print(f"Let it go on with: agiraph extend {goal.id} {more}")
        return (DONE_WITH_DOUBTS if goal.doubts else 0) if is_done else 1

    def print_next(self, team: TeamView, questions: Sequence[MessageView]) -> None:
        """Print what a person can do about a goal that has not ended."""
        self.print_questions("The team keeps working.", questions)
        self.console.print(f"Watch it with: agiraph tail {team.id}")
        self.console.print(f"Stop it with: agiraph stop {team.id}")

    def print_questions(self, meanwhile: str, questions: Sequence[MessageView]) -> None:
        """Print that the goal has not ended, and what is asked."""
        bill = self.progress.bill
        self.console.print(f"\n[bold yellow]Not done yet.[/] {meanwhile} [dim]{bill}[/]")
        for question in questions:
            lines = question_lines(question, self.console.width, before=Text("It asks: "))
            for line in lines if question.call is not None else lines[:1]:
                self.console.print(line, soft_wrap=True)
            self.console.print(f'Answer with: agiraph answer {question.id} "TEXT"')

    def _files(self, node: NodeDetail) -> list[str]:
        """Return the published files; as paths of this machine if the server's home is here."""
        folder = self._home / "teams" / node.team_id
        if not folder.is_dir():
            folder = Path()
        return [str(folder / f"nodes/{node.id}/published/{name}") for name in sorted(node.manifest)]
