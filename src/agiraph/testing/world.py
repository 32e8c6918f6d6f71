"""World: a whole runtime in a temporary folder, with scripted models and a manual clock."""

import contextlib
import os
import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Unpack

from agiraph.app import Runtime, SharedOptions
from agiraph.core.domain.agents import Agent, Review, Team
from agiraph.core.domain.chat import Thread, Turn
from agiraph.core.domain.events import Event
from agiraph.core.domain.features import brought
from agiraph.core.domain.ids import AgentId, MessageId, NodeId, TeamId, TriggerId
from agiraph.core.domain.messages import Decision, Draft, Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.triggers import Firing, Trigger
from agiraph.core.domain.work import ANSWER, WorkNode
from agiraph.core.home.named_secrets import NamedSecrets, SecretSource
from agiraph.core.home.specialists import specialists
from agiraph.core.services.lifecycle import answers, conversation, teams, timers
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.store import events, messages, nodes, spend, threads, triggers
from agiraph.core.store import teams as team_rows
from agiraph.core.store.engine.sqlite_files import ready
from agiraph.core.store.nodes import NODES
from agiraph.core.store.spend import Spend
from agiraph.core.store.tx import Aftermath
from agiraph.core.tools.base import Tool
from agiraph.models.base import Model
from agiraph.models.embeddings import embeddings
from agiraph.models.registry import Keys
from agiraph.sandbox import levels
from agiraph.sandbox.levels import Wanted
from agiraph.testing import staging
from agiraph.testing.clock import ManualClock
from agiraph.testing.scripted import Line, ScriptedModel

SQLITE = "sqlite:///"


@cache
def _empty_database() -> bytes:
    """Return a SQLite file with today's schema and no teams."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "agiraph.db")
        ready(path).close()
        return path.read_bytes()


def prepare_database(path: Path) -> None:
    """Create an empty database by copying one: to run all migrations takes longer than most tests.

    A file that is there already is left alone: it is an earlier runtime's, or the test's own.
    """
    with contextlib.suppress(FileExistsError), path.open("xb") as file:
        file.write(_empty_database())


def preload(folder: Path) -> None:
    """Do what every process does for its first world in a folder, so that forked processes need
    not."""
    import agiraph.api.event_models  # noqa: F401  # pyright: ignore[reportUnusedImport]

    for place in ("settings", "part"):  # features are imported when they are first used
        brought(place)
    specialists()
    embeddings()
    _empty_database()
    learn_level(folder)


def learn_level(folder: Path) -> None:
    """Find in a forked process how commands are confined in this folder.

    In this process the probe would leave a thread that watches commands; a process with threads
    cannot be forked safely.
    """
    if levels.knows(folder):
        return
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writer, pickle.dumps(levels.choose("", folder)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    if told:  # otherwise each process tries by itself, and says what is wrong
        levels.learn(folder, pickle.loads(told))


def _named(secrets: Mapping[str, str]) -> NamedSecrets:
    """Return secrets with these values, by name."""
    sources = {name: SecretSource(kind="env", place=name) for name in secrets}
    return NamedSecrets(sources=sources, environ=secrets)


class WorldOptions(SharedOptions, total=False):
    """What a world may be given, as the settings of a runtime."""

    keys: Keys | None


class World:
    """A runtime for tests: script its models, found a team, settle, and check the results.

    Use it as a context manager. `tools`, `commands` and `callbacks` add your own, as the settings
    would; a tool may be a function that `agiraph.tool` has marked, which is handed its `secrets`.
    `features` has what features read of the settings, by their names. When it closes, it fails if
    an event did not match its published schema.

    Work ends as in the product: the agent says what done means with `set_acceptance`, `finish` and
    `publish` ask for evidence, and a reviewer judges what no program can check. Tests that are not
    about endings may take `easy_endings`: a goal asks for nothing but an answer, nobody reviews
    it, and a scripted model repeats an ending call that was sent back.
    """

    def __init__(
        self,
        path: Path,
        *,
        database_url: str = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        secrets: NamedSecrets | Mapping[str, str] | None = None,
        sandbox_level: Wanted = "",
        sandbox_readable: tuple[Path, ...] | None = None,
        validates_events: bool = True,
        easy_endings: bool = False,
        **options: Unpack[WorldOptions],
    ) -> None:
        self.path = path
        self._secrets = secrets if isinstance(secrets, NamedSecrets) else _named(secrets or {})
        self.clock: Any = options.get("clock") or ManualClock()
        self._url = database_url or f"sqlite:///{path / 'agiraph.db'}"
        self._tools = tuple(tools)
        self._sandbox_level: Wanted = sandbox_level
        # Tests put programs and pipes beside the home.
        around = (path.absolute().parent.resolve(),)
        self._readable = around if sandbox_readable is None else sandbox_readable
        self.usd_per_day: float | None = options.get("usd_per_day")
        self._keys = options.pop("keys", None) or Keys()
        self._options: SharedOptions = options
        self._models: dict[str, Model] = {}
        self._validates_events = validates_events
        """Whether each event is checked against its schema; benchmarks turn it off."""
        self.easy_endings = easy_endings
        self.invalid_events: list[str] = []
        """What was wrong with events that did not match their schema; a test may clear it."""
        self.runtime: Runtime

    async def __aenter__(self) -> "World":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if (director := staging.director()) is not None:
                await director.before_close(self)
        finally:
            await self.stop()
        assert not self.invalid_events, self.invalid_events

    def _validate(self, aftermath: Aftermath) -> None:
        """Check every event of a commit against the schema that clients get."""
        # Imported here because the models of all events take half a second to build.
        from agiraph.api.event_models import mismatches

        for event in aftermath.events:
            self.invalid_events += mismatches(event)

    async def start(self) -> None:
        """Start a runtime on this folder, with whatever an earlier one has left there."""
        self.path.mkdir(parents=True, exist_ok=True)
        if self._url.startswith(SQLITE):
            prepare_database(Path(self._url.removeprefix(SQLITE)))
        self._options["clock"] = self.clock
        self._options["usd_per_day"] = self.usd_per_day
        self.runtime = await Runtime.open(
            self.path,
            database_url=self._url,
            keys=self._keys,
            tools=self._tools,
            secrets=self._secrets,
            level=self._sandbox_level,
            readable=self._readable,
            # Looked up when a name is first used, so that a test may script models after the start.
            own_models={"scripted": self._scripted},
            **self._options,
        )
        if self._validates_events:
            self.runtime.store.subscribe(self._validate)
        await self.runtime.start()

    async def stop(self) -> None:
        """Stop the runtime in order; its folder and database stay."""
        await self.runtime.close()

    async def restart(self) -> None:
        """Stop the runtime and start another one on the same folder."""
        await self.stop()
        await self.start()

    def script(self, name: str, *lines: Line, insists: bool | None = None) -> ScriptedModel:
        """Add a model named `scripted/NAME` that gives these replies in order.

        If it insists, it repeats an ending call that is sent back. By default it does so only in a
        world with `easy_endings`; in any other the next line is its answer to the refusal.
        """
        repeats = self.easy_endings if insists is None else insists
        model = ScriptedModel(f"scripted/{name}", list(lines), insists=repeats)
        self.model(name, model)
        return model

    def model(self, name: str, model: Model) -> None:
        """Add a model of your own under the name `scripted/NAME`."""
        director = staging.director()
        self._models[name] = model if director is None else director.direct(model)

    def _scripted(self, name: str) -> Model:
        return self._models[name]

    @property
    def store(self) -> Any:
        return self.runtime.store

    async def found(
        self,
        goal: str,
        *,
        model: str = "scripted/ada",
        learns: bool = False,
        heartbeat: float | None = None,
        acceptance: Sequence[str] | None = None,
        review: Review | None = None,
        **more: Any,
    ) -> NewTeam:
        """Create a team with one agent that works on the goal.

        Reflections and heartbeats are off unless they are asked for, so that a script needs replies
        for the work alone. Acceptance lines and reviews are the product's defaults: none are given,
        and `auto`. In a world with `easy_endings` the line is `answer`, and nobody reviews.
        """
        given = {"owner_id": OWNER, "learns": learns, "heartbeat": heartbeat, **more}
        if self.easy_endings:
            acceptance = (ANSWER,) if acceptance is None and more.get("start", True) else acceptance
            review = review or "never"
        given |= {} if acceptance is None else {"acceptance": acceptance}
        given |= {} if review is None else {"review": review}
        return await self.store.write(teams.create, goal=goal, model=model, **given)

    async def settle(self) -> None:
        """Wait until nothing can run: every node has ended, or waits for a person or a time."""
        await self.runtime.engine.idle()
        await self.runtime.parts_idle()
        await self.runtime.trigger_worker.idle()  # an event trigger may have made new work
        await self.runtime.engine.idle()

    async def advance(self, **time: float) -> None:
        """Move the clock, and do what has fallen due."""
        self.clock.advance(**time)
        await self.store.write(timers.fire_due)

    async def pass_time(self, **time: float) -> None:
        """Move the clock, do what has fallen due, and wait until nothing can run."""
        await self.advance(**time)
        await self.settle()

    async def say(
        self,
        agent_id: AgentId,
        text: str,
        *,
        team_id: TeamId,
        sets_to_work: bool = True,
        is_mail: bool = True,
        **more: Any,
    ) -> Message:
        """Send a message to an agent's work, as a person; the agent reads it at its next step."""
        draft = Draft(team_id=team_id, sender=OWNER, recipient=agent_id, text=text, **more)
        return await self.store.write_first(
            bus.send, draft, sets_to_work=sets_to_work, is_mail=is_mail
        )

    async def chat(self, agent_id: AgentId, text: str, **more: Any) -> Message:
        """Send a chat message to an agent, as a person; a reply node answers it at once."""
        given = {"person_id": OWNER, **more}
        return await self.store.write_first(conversation.say, agent_id, text, **given)

    async def conversation(self, agent: Agent) -> list[Message]:
        """Return the messages between the person and the agent, oldest first."""
        return await self.store.read(messages.conversation, agent.team_id, agent.id, OWNER)

    async def answer(
        self, question: Message | MessageId, text: str = "", *, decision: Decision | None = None
    ) -> None:
        """Answer a question or decide on an approval, as a person."""
        identity = question.id if isinstance(question, Message) else question
        await self.store.write(
            answers.answer_question, identity, text, person_id=OWNER, decision=decision
        )

    async def teams(self) -> list[Team]:
        """Return all teams."""
        return await self.store.read(team_rows.every)

    async def team(self, team_id: TeamId) -> Team:
        return await self.store.read(team_rows.TEAMS.get, team_id)

    async def members(self, team_id: TeamId) -> list[Agent]:
        """Return all agents that are or were on a team, in the order in which they were hired."""
        return await self.store.read(team_rows.everyone, team_id)

    async def agent(self, agent_id: AgentId | str | None) -> Agent:
        return await self.store.read(team_rows.AGENTS.get, agent_id)

    async def triggers(self, team_id: TeamId) -> list[Trigger]:
        """Return all triggers that a team has and had, oldest first."""
        return await self.store.read(triggers.of_team, team_id)

    async def firings(self, trigger_id: TriggerId) -> list[Firing]:
        """Return when a trigger fired or was skipped, and what came of it, newest first."""
        return await self.store.read(triggers.firings, trigger_id, limit=10_000)

    async def ledger(self, team_id: TeamId) -> list[Spend]:
        """Return what a team has spent, by node, agent, purpose, model and day."""
        return await self.store.read(spend.of_team, team_id)

    async def board(self, team_id: TeamId) -> list[WorkNode]:
        """Return the nodes of a team."""
        return await self.store.read(nodes.board, team_id)

    async def nodes(self, team_id: TeamId) -> list[WorkNode]:
        """Return the nodes of a team in every lane: work, replies and reflections, oldest first."""
        return await self.store.read(nodes.everything, team_id)

    async def node(self, node_id: NodeId) -> WorkNode:
        return await self.store.read(NODES.get, node_id)

    async def questions(self, team_id: TeamId) -> list[Message]:
        """Return the team's questions and approvals that nobody has answered."""
        return await self.store.read(messages.open_questions, team_id)

    async def messages(self, team_id: TeamId) -> list[Message]:
        """Return all that a team's people, its agents and the runtime have sent, oldest first."""
        return await self.store.read(messages.of_team, team_id)

    async def inbox(self) -> list[Message]:
        """Return the messages in the person's inbox."""
        return await self.store.read(messages.inbox, OWNER)

    async def thread(self, node_id: NodeId) -> Thread:
        found = await self.store.read(threads.of_node, node_id)
        assert found is not None
        return found

    async def threads(self, agent_id: AgentId) -> list[Thread]:
        """Return an agent's threads, oldest first: of work, replies and reflections."""
        return await self.store.read(threads.of_agent, agent_id)

    async def turns(self, of: NodeId | Thread) -> list[Turn]:
        """Return all turns of this thread, or of the thread of this node, oldest first."""
        thread = of if isinstance(of, Thread) else await self.thread(of)
        return await self.store.read(threads.turns, thread.id)

    async def events(self, team_id: TeamId, *, after: int = 0) -> list[Event]:
        """Return the team's events after this number."""
        return await self.store.read(events.after, team_id, after, limit=100_000)

    def published(self, node: WorkNode) -> dict[str, str]:
        """Return the text of each file that a node published, by file name."""
        folder = self.path / "teams" / node.team_id / "nodes" / node.id / "published"
        return {
            str(file.relative_to(folder)): file.read_text()
            for file in sorted(folder.rglob("*"))
            if file.is_file() and file.name != "_manifest.json"
        }
