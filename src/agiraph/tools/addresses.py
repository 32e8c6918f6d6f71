"""Addresses: finds the URLs in a text or a thread, exactly as they are written.

A thread that has read strangers' words may open only addresses that it was given or that its
searches and pages held: an address that the model makes up could carry secrets out.
"""

import re
from collections.abc import Iterator

from agiraph.domain.chat import ToolCall, Turn
from agiraph.run_context import RunContext

_URL = re.compile(r"""https?://[^\s<>"'`\\^{}|]+""", re.IGNORECASE)
_LOCAL = re.compile(r"https?://(?:localhost|127\.|0\.0\.0\.0|\[::1\])", re.IGNORECASE)
_OPENING = {")": "(", "]": "["}


def in_text(text: str) -> set[str]:
    """Return every address in the text, without fragments."""
    found: set[str] = set()
    for match in _URL.finditer(text):
        found.update(_readings(match[0]))
    return {address.partition("#")[0] for address in found}


def _readings(raw: str) -> Iterator[str]:
    """Yield what a match may mean: all of it, or less the punctuation that follows the address."""
    whole = raw
    for end, character in enumerate(raw):
        before = raw[:end]
        # This bracket closes one before the address, as in a Markdown link.
        if character in _OPENING and before.count(_OPENING[character]) <= before.count(character):
            whole = before
            break
    # All readings count, since an address may well end with a bracket. A stranger gains nothing:
    # each is a part of what stands in the text.
    for reading in (raw, whole):
        yield reading
        yield reading.rstrip(".,;:!?*_)]")


def made_up(ctx: RunContext, text: str) -> list[str]:
    """Return the addresses in a text that stand in nothing this thread was given, found or opened;
    addresses of this machine are left out."""
    # A refused call repeats the addresses that it was refused for.
    read = [t for t in ctx.transcript.turns if t.role in ("user", "tool") and not t.failed]
    seen = {_bare(found) for turn in read for found in in_text(turn.text)}
    seen |= {_bare(found) for found in in_text(ctx.team.goal)}
    unknown: dict[str, None] = {}
    for match in _URL.finditer(text):
        readings = [reading.partition("#")[0] for reading in _readings(match[0])]
        if not _LOCAL.match(match[0]) and not any(_bare(each) in seen for each in readings):
            unknown[readings[-1]] = None
    return list(unknown)


def _bare(address: str) -> str:
    """Return an address as it is compared: the scheme and a slash at the end do not matter."""
    return address.partition("://")[2].rstrip("/").lower()


def of_call(call: ToolCall) -> str:
    """Return the address that a call opens, without its fragment."""
    return str(call.arguments.get("url", "")).strip().partition("#")[0]


def known_in(ctx: RunContext) -> set[str]:
    """Return the addresses that this thread did not make up: given, found or linked."""
    called = {call.id: call.name for turn in ctx.transcript.turns for call in turn.calls}
    found = in_text(ctx.team.goal)
    for turn in ctx.transcript.turns:
        tool_name = called.get(turn.ref or "")
        if _is_given(turn) or (_is_read(turn) and _gives_addresses(ctx, tool_name)):
            found |= in_text(turn.text)
    return found


def _gives_addresses(ctx: RunContext, tool_name: str | None) -> bool:
    properties = ctx.known_tools.get(tool_name or "")
    return properties is not None and properties.gives_addresses


def _is_given(turn: Turn) -> bool:
    return turn.role == "user" and not turn.label


def _is_read(turn: Turn) -> bool:
    return turn.role == "tool" and bool(turn.label)
