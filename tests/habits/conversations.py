"""Conversations: what a scripted model is shown, in one form for both kinds of scripts.

A `ScriptedModel` gets a `Request`, a script of a `ModelServer` gets a `Seen`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from agiraph.core.domain.chat import ToolCall, Transcript, Turn
from agiraph.models.base import Request
from agiraph.testing.script import Call, Says, Seen, SeenCall, SeenMessage

MARK = "lapse"
"""The prefix of the ids of calls that only the lapse makes."""
_ID = re.compile(
    r"\b[a-z]+_[0-9a-z]{10,}\b|\bt_\w+(\.\d+)*\b|\b[0-9a-f]{16}\b|:\d{4,5}/|/tmp/\S*|/dev/shm/\S*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One turn that the model is shown, and the object that it stands for."""

    role: str
    text: str
    calls: tuple[ToolCall | SeenCall, ...]
    call_id: str | None
    failed: bool
    whole: Turn | SeenMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A request to a model, whoever parsed it."""

    system: str
    entries: tuple[Entry, ...]
    tools: frozenset[str]
    """The tools that the model may call now."""

    @property
    def replies(self) -> int:
        return sum(entry.role == "assistant" for entry in self.entries)

    @property
    def news(self) -> list[Entry]:
        """The entries since the model's last reply."""
        fresh: list[Entry] = []
        for entry in reversed(self.entries):
            if entry.role == "assistant":
                break
            fresh.insert(0, entry)
        return fresh

    @property
    def is_work(self) -> bool:
        return bool(self.tools & {"finish", "publish"})

    @property
    def is_reply(self) -> bool:
        """Whether it is a reply to a person, in which words are the answer."""
        return "no_work_needed" in self.tools

    @property
    def place(self) -> str:
        """Say which reply of which thread comes next, in words that each run repeats."""
        who = re.search(r"You are ([\w.-]+)\.$", self.system, re.MULTILINE)
        first = next((e.text for e in self.entries if e.role == "user"), "")
        kind = "work" if self.is_work else "reply" if self.is_reply else "words"
        opening = stable(first)[:200]
        return f"{who[1] if who else '?'}/{kind}/{self.replies}/{opening}"


def stable(text: str) -> str:
    """Return a text without what differs between two runs: ids, ports and folders."""
    return " ".join(_ID.sub("…", text).split())


def of_request(request: Request) -> Conversation:
    turns = [turn for turn in request.transcript.turns if turn.role not in ("intent", "system")]
    return Conversation(
        system=request.transcript.system,
        entries=tuple(
            Entry(
                role=turn.role,
                text=turn.text,
                calls=turn.calls,
                call_id=turn.ref if turn.role == "tool" else None,
                failed=turn.failed,
                whole=turn,
            )
            for turn in turns
        ),
        tools=frozenset(t.name for t in request.tools) if request.may_call else frozenset(),
    )


def of_seen(seen: Seen) -> Conversation:
    return Conversation(
        system=seen.system,
        entries=tuple(
            Entry(
                role=message.role,
                text=message.text,
                calls=message.calls,
                call_id=message.call_id,
                failed=message.failed,
                whole=message,
            )
            for message in seen.messages
        ),
        tools=frozenset(seen.tools) if _may_call(seen) else frozenset(),
    )


def _may_call(seen: Seen) -> bool:
    choice = seen.body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    config = seen.body.get("toolConfig", {}).get("functionCallingConfig", {})
    return kind != "none" and config.get("mode") != "NONE"


def to_request(request: Request, entries: Iterable[Entry]) -> Request:
    """Return the request as if only these entries were in it."""
    kept = {id(entry.whole): entry for entry in entries}
    turns: list[Turn] = []
    for turn in request.transcript.turns:
        if turn.role in ("intent", "system"):
            turns.append(turn)
        elif (entry := kept.get(id(turn))) is not None:
            calls = tuple(call for call in entry.calls if isinstance(call, ToolCall))
            turns.append(turn if calls == turn.calls else replace(turn, calls=calls))
    return replace(request, transcript=Transcript(turns))


def to_seen(seen: Seen, entries: Iterable[Entry], *, index: int) -> Seen:
    """Return the request as if only these entries were in it."""
    kept: list[SeenMessage] = []
    for entry in entries:
        assert isinstance(entry.whole, SeenMessage)
        calls = tuple(call for call in entry.calls if isinstance(call, SeenCall))
        kept.append(replace(entry.whole, calls=calls, text=entry.text))
    return replace(seen, messages=tuple(kept), index=index)


def made_by(entry: Entry, said: Says) -> bool:
    """Whether the entry is this reply of a lapse."""
    if entry.role != "assistant":
        return False
    if said.text.strip() and entry.text.strip() == said.text.strip():
        return True
    names = [call.name for call in said.calls]
    return bool(names) and [call.name for call in entry.calls] == names and has_mark(entry)


def has_mark(entry: Entry) -> bool:
    return any(is_marked(call) for call in entry.calls)


def is_marked(call: ToolCall | SeenCall | Call) -> bool:
    return (call.id or "").startswith(MARK)
