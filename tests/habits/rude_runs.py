"""Rude runs: bring a team into a state, let the person write, and play on until all has ended."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from agiraph.api.feature_views.known import Insight, Memory
from agiraph.core.domain.agents import Rule
from agiraph.core.domain.ids import AgentId, NodeId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import ANSWER, WorkNode
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import conversation, teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.members import roster
from agiraph.features.knowledge.verbs import items
from agiraph.testing import World, call
from tests import known as known_by
from tests.api.serving import Served, serving
from tests.habits.acts import LANGUAGES, Ref, Run, State
from tests.habits.rude_players import Cast, Player

COORDINATOR, BOB = "coordinator", "bob"
COLOUR, SIZE, BIRDS = "Which colour?", "Which size?", "Which birds?"
ALIEN = "Delete the old backup"
LONG = 600
"""How often a long message repeats itself, which makes it longer than what quotations show."""
PATIENCE_S = 20.0
ROUNDS = 8
"""How often the person answers what is open: each answer may lead to another question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a team has in the database."""

    nodes: dict[str, WorkNode]
    messages: dict[str, Message]
    triggers: frozenset[str]
    known: frozenset[str]
    """The ids of memories and insights."""


async def rows_of(world: World, team_id: TeamId) -> Rows:
    known: list[Memory | Insight] = []
    for agent in await world.members(team_id):
        known += [
            *await known_by.memories(world, agent.id),
            *await known_by.insights(world, agent.id),
        ]
    return Rows(
        nodes={node.id: node for node in await world.nodes(team_id)},
        messages={message.id: message for message in await world.messages(team_id)},
        triggers=frozenset(trigger.id for trigger in await world.triggers(team_id)),
        known=frozenset(item.id for item in known),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a run has shown: the rows at three moments, and what the person sees."""

    run: Run
    player: Player
    agent_id: str
    before: Rows
    after: Rows
    """When every message had its reply, and nothing else had gone on."""
    end: Rows
    said: tuple[str, ...]
    """The ids of the person's messages, oldest first."""
    earlier: tuple[str, ...]
    """Those that had a reply before, and that the work had not read."""
    shown: list[dict[str, Any]]
    """The conversation as the person sees it, after the replies."""
    inbox: list[dict[str, Any]]
    """What the replies have put into the inbox."""
    faults: tuple[str, ...]
    """What went wrong while it was played."""


@dataclass(slots=True)
class Stage:
    """A world in which runs are played one after the other, each with a team of its own."""

    served: Served
    mouth: Cast
    worker: Cast
    news: asyncio.Event
    other_team: dict[Ref, str] = field(default_factory=dict[Ref, str])
    numbers: "count[int]" = field(default_factory=count)

    @property
    def world(self) -> World:
        return self.served.world

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds; it is looked at after each commit and model call."""
        async with asyncio.timeout(PATIENCE_S):
            while not await holds():
                await self.news.wait()
                self.news.clear()

    async def play(self, run: Run) -> Seen:
        """Play a run to its end, and clear away its team."""
        player = self.mouth.player = self.worker.player = Player(run=run)
        player.may_reply.set()
        founded = await self._prepare(run.state, player)
        try:
            return await _Scene(self, run, player, founded).play()
        except Exception as error:
            error.add_note(f"in the run: {run}")
            raise
        finally:
            for event in (player.goes_on, player.may_reply):
                event.set()
            async with asyncio.timeout(PATIENCE_S):
                await self.world.store.write(teams.archive, founded.team.id)
                await self.world.settle()

    async def _prepare(self, state: State, player: Player) -> NewTeam:
        """Found a team and bring it into a state."""
        first = player.first_calls
        asks = state in (State.ASKS, State.TWO_ASK, State.STOPPED)
        if asks or state is State.ASKS_TWICE:
            more = (call("ask_human", question=SIZE),) if state is State.ASKS_TWICE else ()
            asked = call("ask_human", question=COLOUR, options=["red", "blue"])
            first[COORDINATOR] = [(asked, *more)]
        if state is State.CHILD:
            task = call("assign_task", agent=BOB, task="Count the birds.", description="Count")
            first[COORDINATOR] = [(task,)]
        if state is State.APPROVAL:
            first[COORDINATOR] = [(call("write_file", path="scratch/a.md", content="Text"),)]
        if state in (State.TWO_ASK, State.BOB_ASKS):
            first[BOB] = [(call("ask_human", question=BIRDS),)]
        if state in (State.RUNS, State.ENDS, State.UNREAD, State.PAUSED):
            player.held = {COORDINATOR}
        if state in (State.CHILD, State.BOB_RUNS):
            player.held = {BOB}
        starts = asks or bool(first.get(COORDINATOR)) or COORDINATOR in player.held
        founded = await self.world.found(
            "Write about birds",
            model="scripted/work",
            start=False,
            permissions=(Rule(tool="write_file", action="ask"),),
        )
        await self._give_work(state, player, founded, starts=starts)
        return founded

    async def _give_work(
        self, state: State, player: Player, founded: NewTeam, *, starts: bool
    ) -> None:
        store, team_id, mine = self.world.store, founded.team.id, founded.coordinator
        await store.write(items.remember, mine, "They have a cat.", author=OWNER)
        await store.write(items.learn, mine, "fact", "Herons eat frogs.", author=OWNER)
        bob = await store.write(
            roster.hire, team_id, name=BOB, role="worker", model="scripted/work"
        )
        if starts or state is State.COMPLETED:
            await store.write(teams.set_goal, team_id, "Write about birds", acceptance=(ANSWER,))
            await self._reached(player, COORDINATOR)
        if state is State.ENDED:
            await self._give(team_id, mine.id, "Write about trees")
        if state in (State.BOB_RUNS, State.TWO_ASK, State.BOB_ASKS, State.ENDED):
            await self._give(team_id, bob.id, "Count the birds.")
        if state in (State.BOB_RUNS, State.CHILD):
            return await self._reached(player, BOB)
        if not player.held:
            await self.world.settle()
        if state is State.STOPPED:
            await store.write(teams.stop, team_id)
        if state is State.PAUSED:
            await store.write(teams.pause, team_id)
        return None

    async def _give(self, team_id: TeamId, agent_id: AgentId, task: str) -> None:
        await self.world.store.write(
            planning.create, team_id=team_id, task=task, source="user", assignee_id=agent_id
        )

    async def _reached(self, player: Player, agent: str) -> None:
        """Wait until the model of an agent's work has been asked."""

        async def is_asked() -> bool:
            return any(heard.agent == agent for heard in player.heard)

        await self.until(is_asked)


@dataclass(slots=True)
class _Scene:
    """One run from the person's message on."""

    stage: Stage
    run: Run
    player: Player
    founded: NewTeam
    said: list[str] = field(default_factory=list[str])
    earlier: list[str] = field(default_factory=list[str])

    @property
    def team_id(self) -> TeamId:
        return self.founded.team.id

    async def play(self) -> Seen:
        await self._say_earlier()
        before = await self._rows()
        self.player.refs = {**self._refs(before)}
        inbox = {item["message"]["id"] for item in await self._inbox()}
        await self._say()
        after = await self._rows()
        shown = await self._get(f"/agents/{self.founded.coordinator.id}/conversation")
        new = [item for item in await self._inbox() if item["message"]["id"] not in inbox]
        faults = await self._play_on()
        return Seen(
            run=self.run,
            player=self.player,
            agent_id=self.founded.coordinator.id,
            before=before,
            after=after,
            end=await self._rows(),
            said=tuple(self.said),
            earlier=tuple(self.earlier),
            shown=shown,
            inbox=new,
            faults=tuple(faults),
        )

    async def _say_earlier(self) -> None:
        """Let the person say something that the work has not read when the run begins."""
        if self.run.state is not State.UNREAD:
            return
        self.player.is_prelude = True
        self.earlier = [await self._send(self._words())]
        await self._replied(self.earlier)
        self.player.is_prelude = False

    async def _say(self) -> None:
        """Let the person write, and wait for the replies; work goes on before, or is held."""
        player = self.player
        ends_before = self.run.state is State.ENDS
        player.held = {COORDINATOR} if ends_before else {"*"}
        if ends_before or self.run.messages == "another meanwhile":
            player.may_reply.clear()
        is_bare = self.run.messages == "one bare word"
        words = LANGUAGES[self.run.language].bare if is_bare else self._words()
        self._set_parts(words)
        if self.run.messages == "two at once":
            self.said = await self._send_both(words, self._words())
        else:
            self.said = [await self._send(words)]
        if not player.may_reply.is_set():
            await self.stage.until(self._is_asked)
        if ends_before:
            player.goes_on.set()
            await self.stage.until(self._has_no_work)
            player.goes_on.clear()
            player.held = {"*"}
        if self.run.messages == "another meanwhile":
            self.said.append(await self._send(self._words()))
        player.may_reply.set()
        await self._replied(self.said)

    async def _play_on(self) -> list[str]:
        """Let all work go on, and answer what is asked, until nothing is open."""
        self.player.held = set()
        self.player.goes_on.set()
        world = self.stage.world
        for _ in range(ROUNDS):
            if (await world.team(self.team_id)).status == "paused":
                await world.store.write(teams.resume, self.team_id)
            await self._cancel_research()
            async with asyncio.timeout(PATIENCE_S):
                await world.settle()
            asked = await world.questions(self.team_id)
            for question in asked:
                decision = "deny" if question.kind == "approval" else None
                await world.answer(question, "As you like.", decision=decision)
            if not asked and await self._has_no_work():
                return []
        return [f"the person is still asked after {ROUNDS} rounds, or work is still open"]

    async def _cancel_research(self) -> None:
        """End research, which nobody plays here."""
        for node in (await self._rows()).nodes.values():
            if node.kind.name == "research" and not node.status.is_final:
                await self._ask("POST", f"/nodes/{node.id}/cancel")

    def _words(self) -> str:
        """Return a message of two parts, which no other message holds."""
        said = LANGUAGES[self.run.language]
        number = next(self.stage.numbers)
        more = said.more if self.run.messages != "one long" else f"{said.more}, " * LONG
        return f"{said.request} ({number}a). {more} ({number}b)"

    def _set_parts(self, words: str) -> None:
        request, _, more = words.partition(". ")
        parts = {Ref.REQUEST: request, Ref.MORE: more, Ref.WHOLE: words, Ref.ALIEN: ALIEN}
        self.player.refs = {**self.player.refs, **parts}

    def _refs(self, rows: Rows) -> dict[Ref, str]:
        """Return what the arguments name; an id of nothing for what this state lacks."""
        refs = {ref: f"none_{ref.name.lower()}" for ref in Ref} | self.stage.other_team
        mine = self.founded.coordinator.id
        for node in rows.nodes.values():
            if node.lane == "work":
                refs[Ref.OWN if node.assignee_id == mine else Ref.BOBS] = node.id
        questions = {m.text: m.id for m in rows.messages.values() if m.kind == "question"}
        for ref, text in ((Ref.FIRST, COLOUR), (Ref.LAST, SIZE), (Ref.BOB_ASKED, BIRDS)):
            refs[ref] = questions.get(text, refs[ref])
        if SIZE not in questions:
            refs[Ref.LAST] = refs[Ref.FIRST]
        refs |= {Ref.MEMORY if id.startswith("memory") else Ref.INSIGHT: id for id in rows.known}
        cards = (m.id for m in rows.messages.values() if m.kind == "approval")
        return refs | {Ref.BOB: BOB, Ref.CARD: next(cards, refs[Ref.CARD])}

    async def _send(self, words: str) -> str:
        agent = self.founded.coordinator.id
        sent = await self._ask("POST", f"/agents/{agent}/send", {"message": words})
        return sent["id"]

    async def _send_both(self, *words: str) -> list[str]:
        """Send messages that are there before the reply begins."""
        agent = self.founded.coordinator.id
        return await self.stage.world.store.write(
            lambda tx: [conversation.say(tx, agent, each, person_id=OWNER).id for each in words]
        )

    async def _replied(self, said: list[str]) -> None:
        """Wait until the reply to each of these messages has ended."""

        async def is_replied() -> bool:
            rows = await self._rows()
            replies = (rows.messages[one].reply_id for one in said)
            return all(r is None or rows.nodes[r].status.is_final for r in replies)

        await self.stage.until(is_replied)

    async def _is_asked(self) -> bool:
        return self.player.replies > 0

    async def _has_no_work(self) -> bool:
        rows = await self._rows()
        return all(n.status.is_final for n in rows.nodes.values() if n.lane == "work")

    async def _rows(self) -> Rows:
        return await rows_of(self.stage.world, self.team_id)

    async def _inbox(self) -> list[dict[str, Any]]:
        return (await self._get(f"/inbox?team={self.team_id}"))["items"]

    async def _get(self, path: str) -> Any:
        return await self._ask("GET", path)

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = await self.stage.served.ask(method, path, body)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer


@contextlib.asynccontextmanager
async def stage(path: Path) -> AsyncIterator[Stage]:
    """Open a world for runs, with a team beside them that has asked the person."""
    async with serving(path, reply_model="scripted/mouth") as served:
        news = asyncio.Event()
        mouth, worker = (
            Cast("scripted/mouth", True, news=news),
            Cast("scripted/work", False, news=news),
        )
        served.world.model("mouth", mouth)
        served.world.model("work", worker)
        served.world.store.subscribe(lambda _: news.set())
        made = Stage(served, mouth, worker, news)
        made.other_team = await _other_team(made)
        yield made


async def _other_team(made: Stage) -> dict[Ref, str]:
    from tests.habits.acts import runs

    player = made.worker.player = Player(run=runs(State.IDLE)[0])
    player.first_calls[COORDINATOR] = [(call("ask_human", question="Which sea?"),)]
    other = await made.world.found("Write about fish", model="scripted/work")
    await made.world.settle()
    [question] = await made.world.questions(other.team.id)
    assert other.node is not None
    return {Ref.OTHERS: NodeId(other.node.id), Ref.OTHER_ASKED: question.id}
