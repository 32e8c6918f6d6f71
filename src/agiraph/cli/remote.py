"""Remote: a goal that a running server works on, watched from this terminal."""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from agiraph.api.views import InboxItem, MessageView, NodeDetail, NodeView, TeamView
from agiraph.cli import terminal
from agiraph.cli.inbox import everything
from agiraph.cli.progress import Progress
from agiraph.cli.session import CONNECTION_LOST
from agiraph.client import Client, ConnectionLost, Frame, ReplyDelta
from agiraph.domain.agents import Review, Trust
from agiraph.domain.effort import Effort
from agiraph.domain.errors import Refused
from agiraph.domain.events import Event
from agiraph.domain.work import Budget, Line, NodeStatus

_MAY_END = frozenset(
    {"node.waiting", "node.completed", "node.partial", "node.failed", "node.cancelled",
     "question.asked", "team.stopped", "team.archived", "team.deleted"}
)  # fmt: skip
"""Event types after which the goal may be done, or may wait for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedGoal:
    """A goal as `agiraph run` was given it."""

    text: str
    model: str
    budget: Budget
    acceptance: tuple[str | Line, ...]
    review: Review
    trust: Trust = "standard"
    folders: tuple[str, ...] = ()
    effort: Effort | None = None


class Remote:
    """Creates or resumes a team on the server, shows its progress and asks its questions here."""

    def __init__(self, client: Client, console: Console, home: Path) -> None:
        self._client = client
        self._console = console
        self._home = home
        self._progress = Progress(console)
        self._stopped = asyncio.Event()

    async def begin(self, goal: AskedGoal) -> int:
        limits = {
            "turns": goal.budget.turns,
            "tokens": goal.budget.tokens,
            "usd": goal.budget.usd,
            "seconds": goal.budget.seconds,
        }
        team = await self._client.create_team(
            goal.text,
            model=goal.model,
            budget=limits,
            learns=False,
            acceptance=goal.acceptance,
            review=goal.review,
            trust=goal.trust,
            folders=goal.folders,
            effort=goal.effort,
        )
        return await self.watch(team)

    async def resume(self, name: str, model: str | None) -> int:
        team = await self._client.team(name)
        if model is not None:
            team = await self._client.change_team(team.id, model=model)
        if team.status == "paused":
            team = await self._client.resume(team.id)
        return await self.watch(team, after=team.head)

    async def watch(self, team: TeamView, *, after: int = 0) -> int:
        """Show progress until the goal's node ends or waits for a person. Return the exit code."""
        [coordinator, *_] = await self._client.agents(team.id)
        terminal.greet(self._console, team.name, team.id, coordinator.model)
        terminal.catch_interrupt(self._stopped)
        with self._progress:
            watching = asyncio.create_task(self._until_over(team, after))
            stopping = asyncio.create_task(self._stopped.wait())
            await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if self._stopped.is_set():
                watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        return await self._close(team)

    async def _until_over(self, team: TeamView, after: int) -> None:
        async with contextlib.aclosing(self._client.watch(team.id, after)) as frames:
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
                self._progress.show(frame)
            case ReplyDelta():
                self._progress.show_delta(frame.text)
            case ConnectionLost():
                self._console.print(CONNECTION_LOST)
            case _:
                pass

    async def _is_over(self, team: TeamView) -> bool:
        """Return whether the goal's node has ended, or waits for an answer nobody gives here."""
        root = await self._root(team)
        if root is None or root.status.is_final:
            return True
        if root.status is not NodeStatus.WAITING:
            return False
        for question in await self._questions(team):
            until = question.waits_until
            answer = await terminal.ask(self._progress, question, self._stopped, until=until)
            if answer is None:
                return True
            # Somebody may have answered elsewhere meanwhile: the first answer counts.
            with contextlib.suppress(Refused):
                await self._client.answer(question.id, answer.text, decision=answer.decision)
        return False

    async def _root(self, team: TeamView) -> NodeView | None:
        board = await self._client.board(team.id)
        return next((node for node in board if node.parent_id is None), None)

    async def _questions(self, team: TeamView) -> list[MessageView]:
        def is_open(item: InboxItem) -> bool:
            return item.needs_answer and item.message.team_id == team.id

        return [i.message for i in await everything(self._client) if is_open(i)]

    async def _close(self, team: TeamView) -> int:
        root, bill = await self._root(team), self._progress.bill
        if root is not None and root.status.is_final:
            detail = await self._client.node(root.id)
            return terminal.print_end(self._console, bill, root, self._files(detail))
        self._console.print(
            f"\n[bold yellow]Not done yet.[/] The team keeps working. [dim]{bill}[/]"
        )
        terminal.print_questions(self._console, await self._questions(team))
        self._console.print(f"Watch it with: agiraph tail {team.id}")
        self._console.print(f"Stop it with: agiraph stop {team.id}")
        return 130 if self._stopped.is_set() else 1

    def _files(self, node: NodeDetail) -> list[str]:
        """Return the published files; as paths of this machine if the server's home is here."""
        folder = self._home / "teams" / node.team_id
        if not folder.is_dir():
            folder = Path()
        return [str(folder / f"nodes/{node.id}/published/{name}") for name in sorted(node.manifest)]
