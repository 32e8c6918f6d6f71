"""Window use: what fills the context window of a thread, counted as compaction counts it."""

from collections.abc import Iterator
from typing import Literal

from agiraph.core.domain.chat import LEAN_SYSTEM, Transcript
from agiraph.core.domain.value import dataclass, value

FULL = 0.75
"""The share of the window at which a thread is compacted; the stages need the rest."""
TEAM_MEMORY = "What the team remembers (MEMORY.md)"
OWN_MEMORY = "Your own notes (MEMORY.md)"
NOTES_INDEX = "Index of notes"
NOTES_LOG = "Log of"
NOTEBOOK = "Your notebook"
TEAM_PLAN = "Your plan for the goal (PLAN.md)"
STATE = "How things stand as you begin"
GOAL = "The team's goal"
_MEMORY = (TEAM_MEMORY, OWN_MEMORY, NOTES_INDEX, NOTES_LOG, NOTEBOOK)
_OTHERS = (TEAM_PLAN, STATE, GOAL)

Part = Literal["instructions", "tools", "memory", "conversation", "results"]


@value
class WindowPart:
    """A part of what a model is shown."""

    part: Part
    """instructions: what the agent is and must do. tools: what it may call. memory: notes of team
    and agent. conversation: task, messages, replies and calls. results: answers of tools."""
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowUse:
    """What fills the context window of a thread. The sum is the vendor's count with what came since
    in bytes divided by four; the parts are estimated from it."""

    model: str
    tokens: int
    """What the next request will have, about."""
    window: int | None
    """What a request may have; None: not known."""
    shortened_at: int | None
    """From how many tokens on the thread is shortened."""
    parts: list[WindowPart]
    """Parts without tokens are left out."""


def fixed_tokens(transcript: Transcript) -> int | None:
    """Return the tokens of instructions and tools, with which every request begins; None before the
    first reply. The vendor counted them with the first reply since the last summary."""
    varying = 0
    for turn in transcript.turns[transcript.first :]:
        if turn.role == "assistant":
            counted = turn.usage.input_tokens
            return max(counted - varying // 4, 0) if counted else None
        if turn.ref not in ("assignment", "system", LEAN_SYSTEM):
            varying += len(turn.text)
    return None


def window_parts(transcript: Transcript) -> list[WindowPart]:
    """Return what the next request of a thread consists of; its parts add up to `next_tokens`."""
    memory = sum(map(_bytes, _notes(transcript.system))) // 4
    instructions = max(_bytes(transcript.system) // 4 - memory, 0)
    said = results = assigned = 0
    for turn in transcript.spoken():
        size = _bytes(turn.text) + sum(len(str(call.arguments)) for call in turn.calls)
        if turn.role == "tool":
            results += size
        else:
            said += size
        if turn.ref == "assignment":
            assigned += size // 4
    # What every request begins with was counted with the task.
    fixed = fixed_tokens(transcript)
    tools = 0 if fixed is None else max(fixed - instructions - memory - assigned, 0)
    sizes: dict[Part, int] = {
        "instructions": instructions,
        "tools": tools,
        "memory": memory,
        "conversation": said // 4,
        "results": results // 4,
    }
    return _adding_up(sizes, transcript.next_tokens)


def _adding_up(sizes: dict[Part, int], total: int) -> list[WindowPart]:
    """Return parts in proportion to these sizes, whose sum is the total."""
    whole = sum(sizes.values())
    found: list[WindowPart] = []
    seen = given = 0
    for part, size in sizes.items():
        seen += size
        up_to = 0 if whole == 0 else round(total * seen / whole)
        if up_to > given:
            found.append(WindowPart(part=part, tokens=up_to - given))
        given = up_to
    return found


def _notes(system: str) -> Iterator[str]:
    """Yield the sections of a system prompt that hold notes. A file in them may have headings of
    its own: a section goes on until the next one that is known."""
    is_memory = False
    for section in f"\n{system}".split("\n# ")[1:]:
        if section.startswith(_MEMORY):
            is_memory = True
        elif section.startswith(_OTHERS):
            is_memory = False
        if is_memory:
            yield section


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
