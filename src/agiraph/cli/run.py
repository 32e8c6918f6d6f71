"""`agiraph run`: work on one goal until its result, in the terminal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from agiraph import config
from agiraph.app import Runtime
from agiraph.cli.goal import Remote
from agiraph.cli.session import Local, command, plain_console
from agiraph.cli.settings import confirm_open, money, new_team, option
from agiraph.client import Client, Frame
from agiraph.client.teams import NewTeam
from agiraph.config import Settings
from agiraph.core.domain.agents import name_from_goal
from agiraph.core.domain.errors import Declined, HomeInUse, Unreachable
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.work import GOAL_TURNS
from agiraph.core.store import events
from agiraph.models.catalogue import Catalogue
from agiraph.redaction import environment

if TYPE_CHECKING:
    from agiraph.api.views import MessageView, TeamView
    from agiraph.core.run_context import RunContext

SENDING_TIMEOUT_S = 10
"""How long a run waits at its end for messages to channels."""
DEMO_S = 12.0
"""How long the story of the scripted demo takes in a terminal; other goals take half of it."""


@click.command()
@click.argument("goal", required=False)
@option("--model", help="The model, as provider/model; `demo` needs no key.  [env: AGIRAPH_MODEL]")
@option("--effort")
@click.option("--resume", metavar="TEAM", help="Continue a team that was interrupted or waits.")
@option("--turns", help=f"The most turns.  [default: {GOAL_TURNS}]")
@option("--tokens", help="The most tokens, input and output together.")
@money("The most dollars, as far as prices are known.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="The most minutes.")
@option("--accept")
@option("--accept-as")
@option("--review", also=" [default: auto]")
@option("--trust", also=" [default: standard]")
@option("--folder")
@command
async def run(goal: str | None, model: str | None, resume: str | None, **given: Any) -> None:
    """Work on a GOAL until it is reached, and show the progress.

    Exit code 0 means that the goal was reached, 3 that it was reached with doubts, 1 that it was
    not reached or only in part. Ctrl-C stops the run; --resume continues it later.
    """
    if (goal is None) == (resume is None):
        raise click.UsageError(
            'Give a goal (agiraph run "GOAL") or continue a team (agiraph run --resume TEAM).'
        )
    if resume is not None and any(given.values()):
        raise click.UsageError(
            "--resume keeps the limits of the team: leave out the other options, but for --model."
        )
    confirm_open(given["trust"], name_from_goal(goal or ""))
    settings = config.load(environment())
    if resume is None and model is None and settings.shown["AGIRAPH_MODEL"].origin == "default":
        from agiraph.cli.models import with_model  # most runs have a model

        settings = await with_model(settings)
    minutes = given.pop("minutes")
    given |= {"turns": given["turns"] or GOAL_TURNS, "model": model or settings.model}
    # The team ends with this goal, so it has no later work to learn for.
    seconds = None if minutes is None else minutes * 60
    team: NewTeam = {**new_team({**given, "seconds": seconds}), "learns": False}
    console = plain_console()

    async def work(running: Remote) -> int:
        if resume is not None:
            return await running.resume(resume, model)
        return await running.begin(goal or "", team)

    try:
        async with opened(settings, console) as running:
            code = await work(running)
    except HomeInUse as error:
        async with _running_server(settings, error) as client:
            console.print(f"[dim]The agiraph server at {client.url} does the work.[/]")
            code = await work(Remote(client, console, settings.home))
    raise click.exceptions.Exit(code)


@contextlib.asynccontextmanager
async def _running_server(settings: Settings, error: HomeInUse) -> AsyncGenerator[Client]:
    """Connect to the server that works on this home; raise the error again if there is none."""
    async with Client.of(settings) as client:
        try:
            await client.check()
        except (Unreachable, Declined):
            raise error from None
        yield client


async def refuse_unfit(models: Catalogue, name: str) -> str:
    """Check a model before a team is created with it.

    Raise `Misconfigured`, with advice, if the model is unknown or cannot do the work. Return a
    warning if its server does not answer: the work then waits until it does. Empty: all is well.
    """
    models.resolve(name)
    await models.learn(name)
    models.check(name)
    return models.access_problem(name)


@contextlib.asynccontextmanager
async def opened(settings: Settings, console: Console) -> AsyncGenerator[Run]:
    """Open the runtime of these settings, to work on one goal in this process."""

    def show(of: RunContext, words: str) -> None:
        running.progress.show_delta(of.lease.thread_id, words)

    runtime = await Runtime.of_settings(
        settings,
        on_delta=show,
        demo_s=DEMO_S if settings.demo_s is None else settings.demo_s,
    )
    running = Run(runtime, settings, console)
    try:
        yield running
    finally:
        await runtime.close()


class Run(Remote):
    """One goal in this process: starts the work of its team, and lets it be resumed later."""

    def __init__(self, runtime: Runtime, settings: Settings, console: Console) -> None:
        super().__init__(_Here(runtime, settings), console, settings.home)
        self._runtime = runtime

    async def begin(self, goal: str, settings: NewTeam) -> int:
        # Before a team is created.
        self.progress.warn(await refuse_unfit(self._runtime.models, settings.get("model", "")))
        return await super().begin(goal, settings)

    async def resume(self, name: str, model: str | None) -> int:
        team = await self.client.team(name)
        if model is not None:
            await refuse_unfit(self._runtime.models, model)
            await self.client.change_team(team.id, model=model)
        for member in await self.client.agents(team.id):
            if member.command is None:
                self.progress.warn(await refuse_unfit(self._runtime.models, member.model))
        # What a model has stopped is tried again: to resume it means yes.
        for question in await self.questions(team):
            if question.stopped_by == "model":
                await self.client.answer(question.id, "Try again.")
        return await super().resume(name, None)

    async def watch(self, team: TeamView, *, after: int = 0) -> int:
        # Other teams of the home may have work queued; a person who runs one goal has not asked for
        # it, nor for its cost.
        await self._runtime.start(only=TeamId(team.id))
        return await super().watch(team, after=team.head)

    async def close(self, team: TeamView) -> int:
        rest = await self._runtime.store.read(events.after, TeamId(team.id), self.shown_up_to)
        for event in rest:  # of the commit that ended the goal
            self.progress.show(event)
        with contextlib.suppress(TimeoutError):  # messages that are left are sent at the next start
            async with asyncio.timeout(SENDING_TIMEOUT_S):
                await self._runtime.parts_idle()
        return await super().close(team)

    def print_next(self, team: TeamView, questions: Sequence[MessageView]) -> None:
        self.print_questions("The work so far is saved.", questions)
        self.console.print(f"Continue with: agiraph run --resume {team.id}")


class _Here(Local):
    """A client of the runtime in this process."""

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        super().__init__(
            runtime.store,
            runtime.home,
            model=settings.model,
            models=runtime.models,
            check_model=runtime.models.check,
            is_priced=runtime.models.is_priced,
            folders=settings.folders,
        )
        self._store = runtime.store

    async def watch(self, team: str, after: int = 0) -> AsyncGenerator[Frame]:
        changed = asyncio.Event()
        self._store.subscribe(lambda _: changed.set())
        while True:
            # Before the read: a commit that falls between the read and the wait sets it again.
            changed.clear()
            while page := await self._store.read(events.after, TeamId(team), after):
                for event in page:
                    yield event
                after = page[-1].seq
            await changed.wait()
