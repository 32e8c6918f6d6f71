"""Taint: what a thread may still do by itself after it has read what strangers wrote.

Whatever stands in a page may be what the model does next. So from then on nothing leaves by a way
that was not there before, and nothing stays for later threads, unless a person has said so.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from agiraph.domain.chat import ToolCall, Transcript, Turn
from agiraph.domain.taint import MARK
from agiraph.home import sandbox
from agiraph.home.scopes import Place
from agiraph.run_context import RunContext
from agiraph.store import messages
from agiraph.store.tx import Tx

_URL = re.compile(r"""https?://[^\s<>"'`\\^{}|]+""", re.IGNORECASE)
_OPENING = {")": "(", "]": "["}
_LINKING = frozenset({"web_search", "web_fetch"})
"""Tools whose answers name addresses that were there before this thread had any say in it."""
SAID_LATELY = 200
"""Messages of the person that are looked through for an address."""


def objection(ctx: RunContext, call: ToolCall) -> str | None:
    """Why a person has to decide on this call; None if it may be made."""
    if ctx.tainted_by is None or (judge := _JUDGES.get(call.name)) is None:
        return None
    return judge(ctx, call)


def was_said(tx: Tx, ctx: RunContext, call: ToolCall) -> bool:
    """Whether a person has named this very address themselves, anywhere on the team."""
    if call.name != "web_fetch":
        return False
    said = messages.from_human(tx, ctx.team.id, limit=SAID_LATELY)
    return any(_address(call) in addresses(message.text) for message in said)


def addresses(text: str) -> set[str]:
    """Every address that stands in a text, to the letter."""
    found: set[str] = set()
    for match in _URL.finditer(text):
        found.update(_readings(match[0]))
    return {address.partition("#")[0] for address in found}


def _readings(raw: str) -> Iterator[str]:
    """What may be meant by it: all of it, or what is left without the signs that come after it."""
    whole = raw
    for end, sign in enumerate(raw):
        # It closes what stands around the address, as in a link.
        if sign in _OPENING and raw[:end].count(_OPENING[sign]) <= raw[:end].count(sign):
            whole = raw[:end]
            break
    for reading in (raw, whole):
        yield reading
        yield reading.rstrip(".,;:!?*_)]")


def _fetch(ctx: RunContext, call: ToolCall) -> str | None:
    if _address(call) in _known(ctx.transcript) | addresses(ctx.team.goal):
        return None
    return "the address stands in nothing that it was given or found"


def _address(call: ToolCall) -> str:
    return str(call.arguments.get("url", "")).strip().partition("#")[0]


def _known(transcript: Transcript) -> set[str]:
    """Addresses that this thread did not make up: from its task, from people, found or linked."""
    tools = {c.id: c.name for turn in transcript.turns for c in turn.calls}
    found: set[str] = set()
    for turn in transcript.turns:
        if _is_given(turn) or (_is_read(turn) and tools.get(turn.ref or "") in _LINKING):
            found |= addresses(turn.text)
    return found


def _is_given(turn: Turn) -> bool:
    return turn.role == "user" and MARK not in turn.extra


def _is_read(turn: Turn) -> bool:
    return turn.role == "tool" and MARK in turn.extra


def _bash(ctx: RunContext, call: ToolCall) -> str | None:
    if call.arguments.get("network"):
        return "the command would reach the network"
    if not sandbox.is_possible():
        return "commands cannot be confined on this machine"
    return None


def _write(ctx: RunContext, call: ToolCall) -> str | None:
    spot = ctx.scope.locate(str(call.arguments.get("path", "")))
    if spot.place is Place.OWN_SCRATCH:
        return None
    return "later work would read what it writes there"


def _spawn(ctx: RunContext, call: ToolCall) -> str | None:
    given = call.arguments
    if given.get("memory"):
        return "the newcomer would keep these notes for good"
    if given.get("type") == "autonomous" or given.get("agent_command"):
        return "a program would be run"
    wanted = set(given.get("tools") or ())
    own = set(ctx.agent.tools)
    if own and (not wanted or wanted - own):
        return "the newcomer would have more tools"
    return None


def _lasting(ctx: RunContext, call: ToolCall) -> str | None:
    return "it has effect after this work is done"


_JUDGES: Mapping[str, Callable[[RunContext, ToolCall], str | None]] = {
    "web_fetch": _fetch,
    "bash": _bash,
    "write_file": _write,
    "edit_file": _write,
    "spawn_worker": _spawn,
    "promote": _lasting,
    "schedule": _lasting,
    "promise": _lasting,
}
"""What is looked at twice. What is kept as knowledge is held, where it is kept."""
