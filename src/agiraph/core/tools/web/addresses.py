"""Addresses: finds out how a thread came to know an address.

A thread that has read untrusted text may open an address that it was given or found while it was
clean. The choice among the links of a page can spell a secret, and an address that the model makes
up can carry one.
"""

import re
from collections.abc import Iterable
from typing import Any, Literal

from agiraph.core.domain.chat import AGAIN, ToolCall, Turn
from agiraph.core.domain.ids import SYSTEM
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import team_hosts
from agiraph.core.store import nodes
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx
from agiraph.late_patterns import late
from agiraph.web import links

Origin = Literal["given", "found", "link", "opened_before", "made_up"]
"""given: a person or a clean teammate wrote it. found: a hit of a search that was made while the
thread was clean, opened for the first time. link: of a page or of a later search, one that the
thread chose while it was clean and opens again, or one in clean notes. opened_before: the team has
read a page there, no matter who made the address up. made_up: any other."""
UNKNOWN: frozenset[Origin] = frozenset({"opened_before", "made_up"})
"""The origins of addresses that may hold what the model put into them."""


_LOCAL = late(r"https?://(?:localhost|127\.|0\.0\.0\.0|\[::1\])", re.IGNORECASE)
_HIT = late(r"^\d+\. [^\n]*\n   (\S+)$", re.MULTILINE)
"""The address of a hit, as `web_search` writes it. Addresses in titles and snippets are links."""


def made_up(ctx: RunContext, text: str) -> list[str]:
    """Return the addresses in a text that stand in nothing this thread was given, found or opened;
    addresses of this machine are left out."""
    # A refused call repeats the addresses that it was refused for.
    read = [t for t in ctx.transcript.turns if t.role in ("user", "tool") and not t.failed]
    seen = {_bare(found) for turn in read for found in links.in_text(turn.text)}
    seen |= {_bare(found) for found in links.in_text(ctx.team.goal)}
    unknown: dict[str, None] = {}
    for match in links.URL.finditer(text):
        readings = [reading.partition("#")[0] for reading in links.readings(match[0])]
        if not _LOCAL.match(match[0]) and not any(_bare(each) in seen for each in readings):
            unknown[readings[-1]] = None
    return list(unknown)


def carries_words(tx: Tx, ctx: RunContext, address: str) -> bool:
    """Whether opening this address could tell its host something of this thread: the model made it
    up, and neither has a person named it nor has the team read a page there."""
    wanted = links.requested(address)
    if wanted is None or not made_up(ctx, address):
        return False
    named = team_hosts.was_named(tx, ctx.team.id, wanted)
    return not (named or _was_read_before(tx, ctx, wanted))


def _bare(address: str) -> str:
    """Return an address as it is compared: the scheme and a slash at the end do not matter."""
    return address.partition("://")[2].rstrip("/").lower()


def of_call(call: ToolCall) -> str:
    """Return the address that a call opens, without its fragment."""
    return str(call.arguments.get("url", "")).strip().partition("#")[0]


def origin(tx: Tx, ctx: RunContext, address: str) -> Origin:
    """Return where the thread has this address from."""
    wanted = links.requested(address)
    if wanted is None:
        return "made_up"
    found = _origin(tx, ctx, wanted, before=len(ctx.transcript.turns))
    if found == "found" and _was_opened(ctx, wanted):
        return "link"  # the order in which a few hits are opened again could encode a secret
    return found


def _origin(tx: Tx, ctx: RunContext, wanted: str, *, before: int) -> Origin:
    """Return where the thread had this address from before this turn."""
    if links.holds(ctx.team.goal, wanted) or _was_given(tx, ctx, wanted):
        return "given"
    if team_hosts.was_named(tx, ctx.team.id, wanted):
        return "given"
    if any(links.requested(of_call(call)) == wanted for call in _clean_calls(ctx)):
        return "link"  # no stranger chose it, but opening it often could tell something
    found = _in_answers(tx, ctx, wanted, before=before)
    if found != "made_up":
        return found
    if _in_clean_notes(ctx, wanted) or _in_public_results(tx, ctx, wanted):
        return "link"
    return "opened_before" if _was_read_before(tx, ctx, wanted) else "made_up"


def _was_given(tx: Tx, ctx: RunContext, wanted: str) -> bool:
    """Whether it stands in the clean task, or in a clean message of a person or a teammate.

    A note of the runtime does not count: it may quote the model, as the summary of a thread does.
    """
    for turn in ctx.transcript.turns:
        if turn.role != "user" or turn.label:
            continue
        if not links.holds(turn.text, wanted):
            continue
        if turn.note in ("assignment", AGAIN):
            return True
        mail = MESSAGES.find(tx, turn.key)
        if mail is not None and mail.sender != SYSTEM and mail.call is None:
            return True
    return False


def _in_answers(tx: Tx, ctx: RunContext, wanted: str, *, before: int) -> Origin:
    """Return "found" or "link" for an address in the answers of the web tools.

    The answer to a call that holds the address does not count, nor does a page at an address that
    was made up itself: a site may repeat what it is asked for, as the result of a search there.
    """
    called = {call.id: call for turn in ctx.transcript.turns for call in turn.calls}
    was_clean, is_link = True, False
    for place, turn in enumerate(ctx.transcript.turns[:before]):
        call = called.get(turn.ref or "") if turn.role == "tool" and turn.label else None
        tool = None if call is None else ctx.known_tools.get(call.name)
        if call is not None and tool is not None and tool.gives_addresses:
            if (
                not tool.opens_address
                and was_clean
                and wanted in _requests(_HIT.findall(turn.text))
            ):
                return "found"
            is_link = is_link or (
                links.holds(turn.text, wanted)
                and not links.holds(str(call.arguments), wanted)
                and not (tool.opens_address and _was_made_up(tx, ctx, call, before=place))
            )
        was_clean = was_clean and not turn.label
    return "link" if is_link else "made_up"


def _clean_calls(ctx: RunContext) -> list[ToolCall]:
    """Return the calls of this thread that open an address and were written while it was clean."""
    made: list[ToolCall] = []
    for turn in ctx.transcript.turns:
        if turn.label:
            break
        made += [call for call in turn.calls if _opens(ctx, call)]
    return made


def _was_made_up(tx: Tx, ctx: RunContext, call: ToolCall, *, before: int) -> bool:
    """Whether the call opened an address that the thread had made up."""
    opened = links.requested(of_call(call))
    return opened is None or _origin(tx, ctx, opened, before=before) in UNKNOWN


def _requests(addresses: Iterable[str]) -> set[str | None]:
    return {links.requested(address) for address in addresses}


def _was_opened(ctx: RunContext, wanted: str) -> bool:
    """Whether a call of this thread has opened the address before."""
    answered = {turn.ref for turn in ctx.transcript.turns if turn.role == "tool"}
    return any(
        call.id in answered and links.requested(of_call(call)) == wanted
        for turn in ctx.transcript.turns
        for call in turn.calls
        if _opens(ctx, call)
    )


def _opens(ctx: RunContext, call: ToolCall) -> bool:
    tool = ctx.known_tools.get(call.name)
    return tool is not None and tool.opens_address


def _in_clean_notes(ctx: RunContext, wanted: str) -> bool:
    """Whether the address stands in the system prompt, which holds the notes, and no untrusted text
    does."""
    first = ctx.transcript.turns[:1]
    return any(t.role == "system" and not t.label and links.holds(t.text, wanted) for t in first)


def _was_read_before(tx: Tx, ctx: RunContext, wanted: str) -> bool:
    """Whether any thread of the team has read a page there: the site has got this request before.

    A team that watches a page finds its address in a labelled note, where it could be made up.
    """
    of: dict[str, Any] = {"team_id": ctx.team.id, "kind": "page", "owner": passages.EVERYONE}
    return any(passages.known(tx, ref=ref, **of) for ref in {wanted, wanted.removesuffix("/")})


def _in_public_results(tx: Tx, ctx: RunContext, wanted: str) -> bool:
    """Whether a public reader of this node has reported it: it knows nothing of the team's."""
    readers = [node for node in nodes.children(tx, ctx.node.id) if not node.kind.sees_team]
    return any(links.holds(node.result or "", wanted) for node in readers)


def answered_calls(turns: Iterable[Turn], tool_name: str) -> int:
    """Return how many calls of this tool have an answer in the thread."""
    kept = list(turns)
    answered = {turn.ref for turn in kept if turn.role == "tool"}
    return sum(
        call.name == tool_name and call.id in answered for turn in kept for call in turn.calls
    )
