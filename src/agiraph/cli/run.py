"""`agiraph run`: work on one goal until its result, in the terminal."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import click
from rich.console import Console

from agiraph import config
from agiraph.app import Runtime
from agiraph.cli import offers, terminal
from agiraph.cli.progress import Progress
from agiraph.cli.remote import AskedGoal, Remote
from agiraph.cli.session import command
from agiraph.cli.settings import (
    ACCEPT_HELP,
    EFFORT_HELP,
    FOLDER_HELP,
    REVIEW_HELP,
    REVIEWS,
    TRUST_HELP,
    TRUSTS,
    absolute_folder,
    accept_as_option,
    confirm_open,
    lines_with_kinds,
)
from agiraph.client import Client
from agiraph.config import Settings
from agiraph.domain.agents import Review, Team, Trust, name_from_goal
from agiraph.domain.effort import EFFORTS, Effort
from agiraph.domain.errors import Declined, HomeInUse, Refused, Unreachable
from agiraph.domain.messages import Message
from agiraph.domain.persons import OWNER
from agiraph.domain.work import GOAL_TURNS, Budget, LineKind, NodeStatus, WorkNode
from agiraph.home import given_folders
from agiraph.providers.catalogue import Catalogue
from agiraph.redaction import environment
from agiraph.services.board import budgets, requests, texts
from agiraph.services.lifecycle import answers, teams
from agiraph.services.lifecycle import settings as team_settings
from agiraph.store import messages, nodes
from agiraph.store import teams as rows
from agiraph.store.tx import Aftermath

SENDING_TIMEOUT_S = 10
"""How long a run waits at its end for messages to channels."""


@click.command()
@click.argument("goal", required=False)
@click.option(
    "--model", help="The model, as provider/model; `demo` needs no key.  [env: AGIRAPH_MODEL]"
)
@click.option("--effort", type=click.Choice(EFFORTS), help=EFFORT_HELP)
@click.option("--resume", metavar="TEAM", help="Continue a team that was interrupted or waits.")
@click.option("--turns", type=click.IntRange(1), help=f"The most turns.  [default: {GOAL_TURNS}]")
@click.option(
    "--tokens", type=click.IntRange(1), help="The most tokens, input and output together."
)
@click.option(
    "--budget",
    "--usd",
    "usd",
    type=click.FloatRange(min=0, min_open=True),
    help="The most dollars, as far as prices are known.",
)
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="The most minutes.")
@click.option("--accept", multiple=True, metavar="LINE", help=ACCEPT_HELP)
@accept_as_option
@click.option("--review", type=click.Choice(REVIEWS), help=f"{REVIEW_HELP}  [default: auto]")
@click.option("--trust", type=click.Choice(TRUSTS), help=f"{TRUST_HELP}  [default: standard]")
@click.option("--folder", "folders", multiple=True, metavar="PATH[:ro|rw]", help=FOLDER_HELP)
@command
async def run(
    goal: str | None,
    model: str | None,
    effort: Effort | None,
    resume: str | None,
    turns: int | None,
    tokens: int | None,
    usd: float | None,
    minutes: float | None,
    accept: tuple[str, ...],
    accept_as: tuple[tuple[LineKind, str], ...],
    review: Review | None,
    trust: Trust | None,
    folders: tuple[str, ...],
) -> None:
    """Work on a GOAL until it is reached, and show the progress.

    Exit code 0 means that the goal was reached, 3 that it was reached with doubts, 1 that it was
    not reached or only in part. Ctrl-C stops the run; --resume continues it later.
    """
    if (goal is None) == (resume is None):
        raise click.UsageError(
            'Give a goal (agiraph run "GOAL") or continue a team (agiraph run --resume TEAM).'
        )
    others = (effort, turns, tokens, usd, minutes, accept, accept_as, review, trust, folders)
    if resume is not None and any(others):
        raise click.UsageError(
            "--resume keeps the limits of the team: leave out the other options, but for --model."
        )
    confirm_open(trust, name_from_goal(goal or ""))
    settings = config.load(environment())
    if resume is None and model is None:
        settings = await offers.with_model(settings)
    seconds = None if minutes is None else minutes * 60
    budget = Budget(turns=turns or GOAL_TURNS, tokens=tokens, usd=usd, seconds=seconds)
    console = Console(highlight=False, emoji=False, soft_wrap=True)
    running = Run(settings, console)
    asked = AskedGoal(
        text=goal or "",
        model=model or settings.model,
        budget=budget,
        acceptance=lines_with_kinds(accept, accept_as),
        review=review or "auto",
        trust=trust or "standard",
        folders=tuple(map(absolute_folder, folders)),
        effort=effort,
    )
    try:
        if resume is not None:
            raise click.exceptions.Exit(await running.resume(resume, model))
        raise click.exceptions.Exit(await running.begin(asked))
    except HomeInUse as error:
        async with _running_server(settings, error) as client:
            console.print(f"[dim]The agiraph server at {client.url} does the work.[/]")
            remote = Remote(client, console, settings.home)
            if resume is not None:
                code = await remote.resume(resume, model)
            else:
                code = await remote.begin(asked)
        raise click.exceptions.Exit(code) from None


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


class Run:
    """One run in a terminal: opens the runtime, shows progress and asks questions."""

    def __init__(self, settings: Settings, console: Console) -> None:
        self._settings = settings
        self._console = console
        self._progress = Progress(console)
        self._changed = asyncio.Event()
        self._stopped = asyncio.Event()
        self._team: Team | None = None

    async def begin(self, goal: AskedGoal) -> int:
        folders = given_folders.check(self._settings.home, goal.folders, self._settings.folders)
        async with self._open() as runtime:
            # Before a team is created.
            self._progress.warn(await refuse_unfit(runtime.models, goal.model))
            # The team ends with this goal, so it has no later work to learn for.
            founded = await runtime.store.write(
                teams.create,
                owner_id=OWNER,
                goal=goal.text,
                model=goal.model,
                budget=budgets.for_goal(
                    goal.budget, mode="finite", is_priced=runtime.models.is_priced(goal.model)
                ),
                learns=False,
                acceptance=goal.acceptance,
                review=goal.review,
                trust=goal.trust,
                folders=folders,
                effort=goal.effort,
            )
            return await self._go(runtime, founded.team)

    async def resume(self, name: str, model: str | None) -> int:
        async with self._open() as runtime:
            team = await runtime.store.read(rows.find, name)
            if model is not None:
                await refuse_unfit(runtime.models, model)
                await runtime.store.write(team_settings.change, team.id, model=model)
            for member in await runtime.store.read(rows.members, team.id):
                if member.command is None:
                    self._progress.warn(await refuse_unfit(runtime.models, member.model))
            await self._try_models_again(runtime, team)
            if team.status == "paused":
                await runtime.store.write(teams.resume, team.id)
            return await self._go(runtime, team)

    async def _try_models_again(self, runtime: Runtime, team: Team) -> None:
        """Answer the questions of work that a model has stopped: to resume it means yes."""
        for question in await runtime.store.read(messages.open_questions, team.id):
            if question.text.startswith(texts.CANNOT_GO_ON):
                await runtime.store.write(
                    answers.answer_question, question.id, "Try again.", person_id=OWNER
                )

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[Runtime]:
        runtime = await Runtime.open(
            self._settings.home,
            database_url=self._settings.database_url,
            keys=self._settings.keys,
            prices=self._settings.prices,
            commands=self._settings.commands,
            mcp=self._settings.mcp,
            channels=self._settings.channels,
            reply_model=self._settings.reply_model,
            reader_model=self._settings.reader_model,
            efforts=self._settings.efforts,
            web=self._settings.web,
            extensions=self._settings.extensions,
            limits=self._settings.limits,
            level=self._settings.sandbox,
            readable=self._settings.sandbox_readable,
            zone=self._settings.zone,
            usd_per_day=self._settings.usd_per_day,
            on_delta=lambda _, words: self._progress.show_delta(words),
        )
        try:
            yield runtime
        finally:
            await runtime.close()

    async def _go(self, runtime: Runtime, team: Team) -> int:
        self._team = team
        [coordinator, *_] = await runtime.store.read(rows.members, team.id)
        terminal.greet(self._console, team.name, team.id, coordinator.model)
        terminal.catch_interrupt(self._stopped, self._changed)
        runtime.store.subscribe(self._show_events)
        # Other teams of the home may have work queued; a person who runs one goal has not asked for
        # it, nor for its cost.
        await runtime.start(only=team.id)
        with self._progress:
            root = await self._watch(runtime, team)
        questions = await runtime.store.read(messages.open_questions, team.id)
        with contextlib.suppress(TimeoutError):  # messages that are left are sent at the next start
            async with asyncio.timeout(SENDING_TIMEOUT_S):
                await runtime.outbox.idle()
        return self._close(runtime, root, questions)

    def _show_events(self, aftermath: Aftermath) -> None:
        for event in aftermath.events:
            if self._team is not None and event.team_id == self._team.id:
                self._progress.show(event)
        self._changed.set()

    async def _watch(self, runtime: Runtime, team: Team) -> WorkNode:
        """Return the goal's node when it has ended, was stopped, or waits for an answer."""
        while True:
            # Before the read: a commit that falls between the read and the wait sets it again.
            self._changed.clear()
            root = (await runtime.store.read(nodes.board, team.id))[0]
            if root.status.is_final or self._stopped.is_set():
                return root
            if root.status is NodeStatus.WAITING and not await self._ask_open(runtime, team):
                return root
            await self._changed.wait()

    async def _ask_open(self, runtime: Runtime, team: Team) -> bool:
        """Ask the team's open questions at the terminal; False if one is left unanswered."""
        for question in await runtime.store.read(messages.open_questions, team.id):
            if not await self._ask(runtime, question):
                return False
        return True

    async def _ask(self, runtime: Runtime, question: Message) -> bool:
        """Ask one question at the terminal; return False if nobody answers."""
        until = await runtime.store.read(requests.waits_until, question)
        answer = await terminal.ask(self._progress, question, self._stopped, until=until)
        if answer is None:
            return False
        # Somebody may have answered elsewhere meanwhile: the first answer counts.
        with contextlib.suppress(Refused):
            await runtime.store.write(
                answers.answer_question,
                question.id,
                answer.text,
                person_id=OWNER,
                decision=answer.decision,
            )
        return True

    def _close(self, runtime: Runtime, root: WorkNode, questions: list[Message]) -> int:
        console, bill = self._console, self._progress.bill
        if root.status.is_final:
            folder = runtime.home.node_path(root.team_id, root.id) / "published"
            files = [str(folder / name) for name in sorted(root.manifest)]
            return terminal.print_end(console, bill, root, files)
        console.print(f"\n[bold yellow]Not done yet.[/] The work so far is saved. [dim]{bill}[/]")
        terminal.print_questions(console, questions)
        console.print(f"Continue with: agiraph run --resume {root.team_id}")
        return 130 if self._stopped.is_set() else 1
