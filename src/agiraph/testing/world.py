"""World: a whole runtime in a folder of its own, with scripted models and a clock you turn."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agiraph.api.frames import EVENTS
from agiraph.api.happenings import DATA
from agiraph.api.live import as_frame
from agiraph.app import Runtime
from agiraph.domain.agents import Agent
from agiraph.domain.chat import Thread, Turn
from agiraph.domain.events import Event
from agiraph.domain.ids import HUMAN, AgentId, MessageId, NodeId, TeamId, ThreadId
from agiraph.domain.messages import Decision, Message
from agiraph.domain.time import Clock
from agiraph.domain.work import WorkNode
from agiraph.home.sandbox import Limits
from agiraph.providers.base import Model
from agiraph.providers.prices import Prices
from agiraph.providers.registry import Keys
from agiraph.runtime.channels import Channel
from agiraph.runtime.command_line import Command
from agiraph.runtime.trigger_worker import Callback
from agiraph.services.lifecycle import conversation, journal, teams
from agiraph.services.lifecycle.teams import Founded
from agiraph.services.mail import bus
from agiraph.store import events, messages, nodes, threads
from agiraph.store.nodes import NODES
from agiraph.store.tx import Aftermath
from agiraph.testing.clock import ManualClock
from agiraph.testing.scripted import Line, ScriptedModel
from agiraph.tools.base import Tool
from agiraph.tools.context import RunContext
from agiraph.web.access import Web


class World:
    """Open it, script its models, found a team, settle, and look at what came of it."""

    def __init__(
        self,
        path: Path,
        *,
        database_url: str = "",
        clock: Clock | None = None,
        keys: Keys | None = None,
        prices: Prices | None = None,
        tools: tuple[Tool, ...] = (),
        commands: Mapping[str, Command] | None = None,
        channels: Mapping[str, Channel] | None = None,
        callbacks: Mapping[str, Callback] | None = None,
        reply_model: str = "",
        web: Web | None = None,
        limits: Limits | None = None,
        on_delta: Callable[[RunContext, str], None] | None = None,
        compares: bool = True,
    ) -> None:
        self.path = path
        self.clock: Any = clock or ManualClock()
        self._url = database_url or f"sqlite:///{path / 'agiraph.db'}"
        self._keys = keys or Keys()
        self._prices = prices
        self._tools = tools
        self._commands = commands
        self._channels = channels
        self._callbacks = callbacks
        self._reply_model = reply_model
        self._web = web
        self._limits = limits
        self._on_delta = on_delta
        self._models: dict[str, Model] = {}
        self._compares = compares
        """Whether each event is held against its description; what is measured goes without."""
        self._misfits: list[str] = []
        self.runtime: Runtime

    async def __aenter__(self) -> "World":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        assert not self._misfits, self._misfits

    def _compare(self, aftermath: Aftermath) -> None:
        """Reservation every event against what clients are told of its type."""
        for event in aftermath.events:
            told = DATA[event.type].model_fields
            try:
                EVENTS[event.type].model_validate(as_frame(event))
            except ValidationError as error:
                self._misfits.append(f"{event.type}: {error}")
            if unknown := set(event.data) - set(told):
                self._misfits.append(f"{event.type} says more than it is described to: {unknown}")

    async def start(self) -> None:
        """Begin, or begin again: a new runtime on whatever the last one left."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.runtime = await Runtime.open(
            self.path,
            database_url=self._url,
            keys=self._keys,
            clock=self.clock,
            tools=self._tools,
            prices=self._prices,
            commands=self._commands,
            channels=self._channels,
            callbacks=self._callbacks,
            reply_model=self._reply_model,
            web=self._web,
            limits=self._limits,
            on_delta=self._on_delta,
            own_models={"scripted": self._scripted},
        )
        if self._compares:
            self.runtime.store.subscribe(self._compare)
        await self.runtime.start()

    async def stop(self) -> None:
        await self.runtime.close()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def script(self, name: str, *lines: Line) -> ScriptedModel:
        """A model that answers to `scripted/NAME` with these lines."""
        model = ScriptedModel(f"scripted/{name}", list(lines))
        self._models[name] = model
        return model

    def model(self, name: str, model: Model) -> None:
        """Let any model answer to `scripted/NAME`."""
        self._models[name] = model

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
        **more: Any,
    ) -> Founded:
        """A team of one, at work on the goal; it does nothing more by itself unless told to."""
        by_itself: dict[str, Any] = {"learns": learns, "heartbeat": heartbeat}
        return await self.store.write(teams.found, goal=goal, model=model, **by_itself, **more)

    async def settle(self) -> None:
        """Let everything run that can run."""
        await self.runtime.engine.idle()
        await self.runtime.outbox.idle()
        await self.runtime.trigger_worker.idle()  # what it heard of may set somebody to work
        await self.runtime.engine.idle()

    async def say(self, agent_id: AgentId, text: str, *, team_id: TeamId, **more: Any) -> Message:
        return await self.store.write(
            bus.send, team_id=team_id, sender=HUMAN, recipient=agent_id, text=text, **more
        )

    async def chat(self, agent_id: AgentId, text: str, **more: Any) -> Message:
        """A person's message that is answered at once."""
        return await self.store.write(conversation.say, agent_id, text, **more)

    async def conversation(self, agent: Agent) -> list[Message]:
        return await self.store.read(messages.conversation, agent.team_id, agent.id)

    async def answer(
        self, question: Message | MessageId, text: str = "", *, decision: Decision | None = None
    ) -> None:
        identity = question.id if isinstance(question, Message) else question
        await self.store.write(journal.answer_question, identity, text, decision=decision)

    async def board(self, team_id: TeamId) -> list[WorkNode]:
        return await self.store.read(nodes.board, team_id)

    async def node(self, node_id: NodeId) -> WorkNode:
        return await self.store.read(NODES.get, node_id)

    async def questions(self, team_id: TeamId) -> list[Message]:
        return await self.store.read(messages.open_questions, team_id)

    async def inbox(self) -> list[Message]:
        return await self.store.read(messages.inbox)

    async def thread(self, node_id: NodeId) -> Thread:
        found = await self.store.read(threads.of_node, node_id)
        assert found is not None
        return found

    async def turns(self, node_id: NodeId) -> list[Turn]:
        thread = await self.thread(node_id)
        return await self.store.read(threads.turns, ThreadId(thread.id))

    async def events(self, team_id: TeamId, *, after: int = 0) -> list[Event]:
        return await self.store.read(events.after, team_id, after, limit=100_000)

    def published(self, node: WorkNode) -> dict[str, str]:
        """What a node published, by file name."""
        folder = self.path / "teams" / node.team_id / "nodes" / node.id / "published"
        return {
            str(file.relative_to(folder)): file.read_text()
            for file in sorted(folder.rglob("*"))
            if file.is_file() and file.name != "_manifest.json"
        }
