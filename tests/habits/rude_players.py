"""Rude players: the models of one team, which reply and work as a run says."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agiraph.core.domain.errors import ModelError
from agiraph.core.runtime.replies.reply import DECISION
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import Call, call, says
from agiraph.testing.scripted import as_reply
from tests.habits.acts import ACTS, ERROR, LANGUAGES, Act, Ref, Run

_NAME = re.compile(r"You are ([\w.-]+)\.$", re.MULTILINE)
AFTER_SILENCE = "OK."


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One request to the model of some work: all that it was shown."""

    agent: str
    refs: frozenset[str]
    """The ids of the messages that came as mail."""
    text: str


@dataclass(slots=True, kw_only=True)
class Player:
    """Plays all models of one team: work makes its first calls, then ends whenever it is asked."""

    run: Run
    first_calls: dict[str, list[tuple[Call, ...]]] = field(default_factory=dict)
    """By the agent's name: the calls of its first replies."""
    refs: Mapping[Ref, str] = field(default_factory=dict[Ref, str])
    is_prelude: bool = False
    """Whether a reply gives the message to own work, because the run has not begun."""
    heard: list[Heard] = field(default_factory=list[Heard])
    held: set[str] = field(default_factory=set[str])
    """The agents whose work waits; `*`: all."""
    replies: int = 0
    """How many times the model of a reply was asked."""
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    may_reply: asyncio.Event = field(default_factory=asyncio.Event)
    chats: bool = False
    """Whether a reply has said that nothing is to be done."""
    ids: set[str] = field(default_factory=set[str])
    """What the calls and answers of a reply have named."""

    def act(self) -> Act:
        return ACTS[self.run.act]

    async def reply(self, request: Request) -> Reply:
        """Return a reply to the person, or the answer to what their message asks for."""
        if self.is_prelude:
            return as_reply(says("I pass it on.", call("tell", node_id="coordinator")))
        self.replies += 1
        await self.may_reply.wait()
        turns = [*request.transcript.spoken()]
        if turns and turns[-1].ref == DECISION:
            return as_reply(says(self._decision()))
        if self.act().fails:
            raise ModelError("The server is on fire.")
        words = getattr(LANGUAGES[self.run.language], self.run.wording or "nothing")
        text = words if self.run.wording else ""
        made = sum(turn.role == "assistant" for turn in turns)
        calls = tuple(self._resolved(c) for c in self.act().calls)
        if made == 0 or (self.act().repeats and _is_refused(request)):
            self.chats |= any(c.name == "no_work_needed" for c in calls)
            return as_reply(says(text, *calls))
        return as_reply(says(text or AFTER_SILENCE))

    def _resolved(self, made: Call) -> Call:
        given = {name: self._value(value) for name, value in made.arguments.items()}
        return Call(made.name, given, raw=made.raw)

    def _value(self, value: Any) -> Any:
        if not isinstance(value, Ref):
            return value
        self.ids.add(self.refs[value])
        return self.refs[value]

    def _decision(self) -> str:
        decision = self.run.decision
        if decision == ERROR:
            raise ModelError("The server is on fire.")
        if isinstance(decision, str):
            return decision
        parts = [{name: self._value(v) for name, v in part.items()} for part in decision]
        self.chats |= any(part.get("what") == "chat" for part in parts)
        return json.dumps({"parts": parts}, ensure_ascii=False)

    async def work(self, request: Request) -> Reply:
        """Return the next calls of some work."""
        found = _NAME.search(request.transcript.system)
        agent = found[1] if found else "?"
        turns = [*request.transcript.spoken()]
        self.heard.append(
            Heard(
                agent=agent,
                refs=frozenset(turn.ref for turn in turns if turn.ref),
                text="\n".join([request.transcript.system, *(turn.text for turn in turns)]),
            )
        )
        if {"*", agent} & self.held:
            await self.goes_on.wait()
        if self.first_calls.get(agent):
            return as_reply(says("", *self.first_calls[agent].pop(0)))
        names = {tool.name for tool in request.tools}
        if not names & {"finish", "publish"}:
            await asyncio.Event().wait()  # research, which is cancelled in the end
        ending = "finish" if "finish" in names else "publish"
        return as_reply(says(call(ending, summary="It is done.")))


def _is_refused(request: Request) -> bool:
    turns = request.transcript.turns
    return any(turn.failed for turn in turns if turn.role == "tool")


@dataclass(slots=True)
class Cast:
    """The models of a world, played by whoever plays the present run."""

    name: str
    is_mouth: bool
    player: Player | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set with each request."""

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        assert self.player is not None
        self.news.set()  # whoever waits for it runs once this call waits, and has recorded it
        made = self.player.reply(request) if self.is_mouth else self.player.work(request)
        return await made
