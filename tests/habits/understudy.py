"""Understudy: plays a scenario's models with one lapse, and goes on where their scripts end.

Once the lapse has happened, the script is shown its thread without any trace of it: the reply, the
answers to its calls, the runtime's notes about it. So the script continues with the reply that the
lapse displaced, whichever way it finds its place.
"""

import asyncio
import inspect
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from agiraph.models.base import Model, OnDelta, Reply, Request
from agiraph.testing.script import Call, Says, Script, Seen, Step, says
from agiraph.testing.scripted import as_reply
from tests.habits import conversations
from tests.habits.conversations import MARK, Conversation, Entry, has_mark, is_marked, made_by
from tests.habits.lapses import ASKS_IN_WORDS, Lapse, ending_of

AGAIN = "again"
"""The prefix of the ids of calls that repeat what was refused because of the lapse."""
PATIENCE = 6
"""How often an improvised ending is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A reply of a scenario: where a lapse may happen."""

    name: str
    nth: int
    """The number of earlier replies at a place of the same name."""
    talk: Conversation
    said: Says
    is_on_the_wire: bool

    def admits(self, lapse: Lapse) -> bool:
        if not lapse.applies(self.talk) or (lapse.is_on_the_wire and not self.is_on_the_wire):
            return False
        return lapse.distort is None or lapse.distort(self.said, self.talk) is not None


@dataclass(slots=True)
class Understudy:
    """The lapse of one run; without one, the places where a lapse may happen."""

    lapse: Lapse | None = None
    where: tuple[str, int] = ("", 0)
    places: list[Place] = field(default_factory=list[Place])
    has_lapsed: bool = False
    improvised: int = 0
    asked: int = 0
    """Requests so far: tells whether a run still moves."""
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the scenario is over: nobody opens its gates any more."""
    _met: Counter[str] = field(default_factory=Counter[str])
    _left: list[Says] = field(default_factory=list[Says])
    _refused: tuple[Call, ...] = ()
    """Calls that the lapse gave another form; they are repeated if that form was refused."""
    _was_accepted: bool = False
    """Whether a call in another form was made all the same, so that nothing is to be repeated."""
    _hidden: int = 0

    async def answer(
        self,
        talk: Conversation,
        ask: Callable[[Conversation], Awaitable[Says | Step]],
        *,
        is_on_the_wire: bool,
    ) -> Says | Step:
        """Return the reply to a request: the script's, the lapse, or an improvised one."""
        self.asked += 1
        if self.lapse is None:
            said = await ask(talk)
            self._note(talk, said, is_on_the_wire)
            return said
        if not self.has_lapsed and self._is_here(talk):
            self.has_lapsed = True
            return await self._lapse(self.lapse, talk, ask)
        if self.has_lapsed and (repair := self._repair(talk)) is not None:
            return repair
        try:
            return await self._within_the_scenario(ask(self._without_traces(talk)))
        except Exception:
            self.improvised += 1
            return improvise(talk)

    @property
    def hidden(self) -> int:
        """Replies so far that the script knows nothing of."""
        return self._hidden

    def _note(self, talk: Conversation, said: Says | Step, is_on_the_wire: bool) -> None:
        if isinstance(said, Says):
            place = Place(
                name=talk.place,
                nth=self._met[talk.place],
                talk=talk,
                said=said,
                is_on_the_wire=is_on_the_wire,
            )
            self.places.append(place)
        self._met[talk.place] += 1

    def _is_here(self, talk: Conversation) -> bool:
        here = (talk.place, self._met[talk.place]) == self.where
        self._met[talk.place] += 1
        return here

    async def _lapse(
        self,
        lapse: Lapse,
        talk: Conversation,
        ask: Callable[[Conversation], Awaitable[Says | Step]],
    ) -> Says | Step:
        if lapse.distort is None:
            self._hidden += len(lapse.said)
            self._left = list(lapse.said[1:])
            return lapse.said[0]
        said = await ask(talk)
        distorted = lapse.distort(said, talk) if isinstance(said, Says) else None
        if distorted is None or not isinstance(said, Says):
            self.has_lapsed = False
            return said
        unmarked = [call for call in distorted.calls if not is_marked(call)]
        if len(unmarked) < len(said.calls):
            self._refused = tuple(c for c in said.calls if c not in unmarked)
        return distorted

    def _repair(self, talk: Conversation) -> Says | None:
        """Return what a decent model says about its own lapse, if it is asked again."""
        lapse = self.lapse
        assert lapse is not None
        if not (talk.is_work or talk.is_reply):
            return None  # a summary or a last answer: calls count for nothing there
        if ASKS_IN_WORDS in _text(talk.news) and "send_message" in talk.tools:
            return self._answer_to_teammate(talk)
        if not any(made_by(entry, said) for entry in talk.entries for said in lapse.said):
            return self._repeat(talk) if self._refused else None
        if self._left and (talk.is_work or talk.is_reply):
            return self._left.pop(0)
        return None

    def _answer_to_teammate(self, talk: Conversation) -> Says | None:
        found = re.search(r"\[?(?:Message|Question) from ([\w.-]+)", _text(talk.news))
        if found is None or found[1] == "human":
            return None
        self._hidden += 1
        return says(Call("send_message", {"to": found[1], "content": "Red."}, id=f"{MARK}_a"))

    def _repeat(self, talk: Conversation) -> Says | None:
        """Repeat the calls that were refused for their form; what was accepted stands."""
        marked = {c.id for entry in talk.entries for c in entry.calls if is_marked(c)}
        answers = [entry for entry in talk.entries if entry.call_id in marked]
        if not answers:
            return None
        refused, self._refused = self._refused, ()
        if not any(entry.failed for entry in answers):
            self._was_accepted = True
            return None
        self._hidden += 1
        again = (replace(call, id=f"{AGAIN}_{n}") for n, call in enumerate(refused, start=1))
        return Says(calls=tuple(again))

    def _without_traces(self, talk: Conversation) -> Conversation:
        if not self.has_lapsed or not (talk.is_work or talk.is_reply):
            return talk
        assert self.lapse is not None
        kept: list[Entry] = []
        gone: set[str] = set()
        for entry in talk.entries:
            if entry.role == "assistant":
                entry = self._untraced(entry, kept, gone)
                if entry is None:
                    continue
            if entry.call_id in gone or _is_note(entry):
                continue
            kept.append(entry)
        return replace(talk, entries=tuple(kept))

    def _untraced(self, entry: Entry, kept: list[Entry], gone: set[str]) -> Entry | None:
        """Return a reply as the script gave it; None if it gave none."""
        assert self.lapse is not None
        if entry.calls and all((c.id or "").startswith(AGAIN) for c in entry.calls):
            before = max(n for n, one in enumerate(kept) if one.role == "assistant")
            kept[before] = replace(kept[before], calls=(*kept[before].calls, *entry.calls))
            return None
        is_displaced = any(made_by(entry, said) for said in self.lapse.said)
        if has_mark(entry) and not self._was_accepted:
            gone |= {c.id for c in entry.calls if is_marked(c)}
            entry = replace(entry, calls=tuple(c for c in entry.calls if not is_marked(c)))
        is_empty = not entry.calls and (is_displaced or not entry.text.strip())
        return None if is_empty else entry

    async def _within_the_scenario(self, reply: Awaitable[Says | Step]) -> Says | Step:
        """Wait for a script, but not at a gate that nobody opens any more."""
        asked = asyncio.ensure_future(reply)
        over = asyncio.ensure_future(self.is_over.wait())
        try:
            await asyncio.wait({asked, over}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                await asyncio.wait({asked}, timeout=0.05)
            if asked.done():
                return asked.result()
            raise TimeoutError("the script waits for a scenario that is over")
        finally:
            asked.cancel()
            over.cancel()

    # ---- both kinds of scripts ---------------------------------------------------------------

    def direct(self, model: Model) -> Model:
        return _Directed(model, self)

    def rewrite(self, script: Script) -> Script:
        async def play(seen: Seen) -> Step:
            async def ask(talk: Conversation) -> Step:
                shown = conversations.to_seen(
                    seen, talk.entries, index=max(0, seen.index - self.hidden)
                )
                step = script(shown)
                return await step if inspect.isawaitable(step) else step

            talk = conversations.of_seen(seen)
            return await self.answer(talk, ask, is_on_the_wire=True)

        return play


@dataclass(frozen=True, slots=True)
class _Directed:
    """A scripted model in the same process, played by an understudy."""

    inner: Model
    understudy: Understudy

    @property
    def name(self) -> str:
        return self.inner.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        async def ask(talk: Conversation) -> Says:
            shown = conversations.to_request(request, talk.entries)
            return _as_says(await self.inner.reply(shown))

        talk = conversations.of_request(request)
        said = await self.understudy.answer(talk, ask, is_on_the_wire=False)
        assert isinstance(said, Says)
        if on_delta is not None and said.text:
            on_delta(said.text)
        return as_reply(said)


def _as_says(reply: Reply) -> Says:
    calls = [Call(c.name, c.arguments, id=c.id or None, raw=c.malformed) for c in reply.calls]
    return Says(
        text=reply.text,
        calls=tuple(calls),
        input_tokens=reply.usage.input_tokens,
        output_tokens=reply.usage.output_tokens,
        cached_tokens=reply.usage.cached_tokens,
    )


def _is_note(entry: Entry) -> bool:
    """Whether it is a note of the runtime about the conversation itself."""
    ref = getattr(entry.whole, "ref", None) or ""
    return (
        entry.role == "user"
        and entry.text.startswith("[Runtime]")
        and not ref.startswith(("flush:", "compact:", "summary:", "msg_"))
    )


def _text(entries: list[Entry]) -> str:
    return "\n".join(entry.text for entry in entries)


def improvise(talk: Conversation) -> Says:
    """Return what a decent model says without a script: it waits for what is open, then ends."""
    if not talk.is_work:
        return says("All right.")
    ending = ending_of(talk)
    tried = [
        entry.text
        for entry in talk.entries
        if entry.role == "tool" and entry.call_id in _calls_of(talk, ending)
    ]
    waited = {c.arguments.get("id") for entry in talk.entries for c in entry.calls}
    open_nodes = re.findall(r"node_\w+", tried[-1]) if tried else []
    left = [node for node in dict.fromkeys(open_nodes) if node not in waited]
    if left and "task_output" in talk.tools:
        return says(Call("task_output", {"id": left[0], "blocking": True}))
    if len(tried) >= PATIENCE:
        return says("I cannot end this.")
    return says(Call(ending, {"summary": f"Ended without a script, try {len(tried) + 1}."}))


def _calls_of(talk: Conversation, name: str) -> set[str]:
    return {c.id for entry in talk.entries for c in entry.calls if c.name == name}
