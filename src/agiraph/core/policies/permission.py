"""Permission: decides which tool calls are allowed, denied, or need a person's approval."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from fnmatch import fnmatchcase

from agiraph.core.domain.agents import Rule
from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Answer, Done, Pending
from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.provenance.sinks import Sink, WayOut, verdict
from agiraph.core.domain.value import dataclass, value
from agiraph.core.domain.work import ASKED_PERSON, WaitingOn
from agiraph.core.home.scopes import Area
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import requests, team_hosts
from agiraph.core.services.lifecycle import digest
from agiraph.core.services.mail import bus, deliveries
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool
from agiraph.core.tools.commands import private_sends
from agiraph.core.tools.files import given_folders
from agiraph.core.tools.web import addresses
from agiraph.web import links


async def guarded_way_out(ctx: RunContext, tool: Tool | None, call: ToolCall) -> WayOut | None:
    """Return the way out of this call if a person has to decide on it; None if it may be made."""
    if tool is None or tool.way_out is None:
        return None
    runs_commands = tool.properties.runs_commands
    # A command reads the folders of a person by itself, also where nothing has been read of them.
    label = ctx.label | (given_folders.label_of(ctx) if runs_commands else CLEAN)
    is_free = not label or not ctx.node.kind.sees_team
    is_confined = ctx.command_rules.confinement.is_confined
    if is_free and (is_confined or not runs_commands):
        return await private_sends.way_out(ctx, tool, call)
    way = await tool.way_out(ctx, call)
    if way is None or (is_free and way.sink is not Sink.UNCONFINED_COMMAND):
        return None
    return None if verdict(way.sink, ctx.team.trust) == "free" else way


APPROVED = Done("approved")
ASKED = "Not made yet: a person decides on this call"
_ASKED = (
    f"{ASKED}, and was asked as {{id}}. Go on without it: you will be told what they decide while "
    "you work; the request closes with it. Only if nothing can be done without it, make the same "
    "call again with wait=true."
)
_ASKED_BEFORE = (
    f"{ASKED}: you asked in earlier work, as {{id}} on {{at:%Y-%m-%d}}, and nobody has decided. "
    "Go on without it. Only if nothing can be done without it, make the same call again with "
    "wait=true."
)
_LATE = (
    f"{ASKED}, and nobody has within {{minutes:,}} minutes. The request {{id}} is open while you "
    "work. Do not make this call again: do without it, and submit what you have."
)
_GRANTED = "A grant of a person allows the call."

_CHAINED = re.compile(r"[;&|<>`\n]|\$\(")


@value
class Ruling:
    """The decision on a call: it is refused, a person must approve it, or (with neither) it is
    made."""

    refusal: str | None = None
    needs_person: bool = False
    is_confirmed: bool = False
    """Whether a rule of the team explicitly allows it, whatever the thread has read."""
    way_out: WayOut | None = None
    """The way out on which a person has to decide; None if a rule of the team asks. A call that
    a rule asks about always waits for the decision."""


_MADE = Ruling()


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """The team's rules, in order: the first match decides.

    A call without a match is allowed, unless it takes a way out of a labelled thread on which a
    person has to decide (`way_out_of`).

    A rule is compared with the first argument of the tool's signature. The caller passes calls with
    their arguments in that order, because a model may write them in any order.
    """

    tools: Mapping[str, Tool]

    def matching(self, ctx: RunContext, call: ToolCall) -> Rule | None:
        """Return the first rule that applies to the call."""
        if not ctx.team.permissions:
            return None
        tool = self.tools.get(call.name)
        is_added = tool is not None and tool.properties.outside is not None
        spellings = _spellings(ctx, call, is_added=is_added)
        found = first_match(ctx.team.permissions, tool, call.name, spellings)
        return None if found is None else ctx.team.permissions[found]

    async def rule_on(self, ctx: RunContext, call: ToolCall) -> "Ruling":
        """Decide on a call: by the team's first matching rule; else by its trust, if the thread
        holds untrusted text and the call takes a way out of it."""
        rule = self.matching(ctx, call)
        if rule is not None:
            if rule.action == "deny":
                denied = f"Not allowed: this team's rules deny {call.name} on {rule.pattern!r}."
                return Ruling(refusal=f"{denied} Do it another way, or ask the human.")
            return Ruling(needs_person=rule.action == "ask", is_confirmed=rule.action == "allow")
        tool = self.tools.get(call.name)
        if tool is None or tool.way_out is None:
            return _MADE
        way_out = await guarded_way_out(ctx, tool, call)
        return Ruling(needs_person=way_out is not None, way_out=way_out)

    def approve(
        self, tx: Tx, ctx: RunContext, call: ToolCall, ruling: "Ruling", *, waits: bool
    ) -> Answer:
        """Return a person's decision on this call, from a request or a grant; if there is none,
        ask them.

        The agent goes on meanwhile. Its call waits if it `waits`, if a rule of the team asks, or
        for a while if it was made before and nobody has decided yet: a model that repeats it has
        nothing else to do.
        """
        asked = requests.find_about(tx, ctx.node.id, call)
        is_undecided = asked is None or asked.answered_at is None
        if is_undecided and self._is_allowed(tx, ctx, call, ruling):
            if asked is not None:
                requests.close(tx, asked, _GRANTED)
            return APPROVED
        parks = waits or ruling.way_out is None
        if asked is None:
            if (refusal := _cannot_ask(tx, ctx, ruling)) is not None:
                return Done(refusal, failed=True)
            before = None if parks else requests.asked_before(tx, ctx.node, ctx.agent.id, call)
            if before is not None:
                told = _ASKED_BEFORE.format(id=before.id, at=before.created_at)
                return Done(told, failed=True)
            asked = bus.request(
                tx,
                ctx.lease,
                f"May I call {call.name}?{_why(ctx, ruling.way_out)}",
                call=call,
                topic="call",
                ref=call.id if parks else None,
                way_out=ruling.way_out,
                notifies=parks,
            )
            if ruling.way_out is not None and not parks:
                digest.schedule(tx, ctx.team.id)
                told = f"{_ASKED.format(id=asked.id)} {ruling.way_out.instead}"
                return Done(told.rstrip(), failed=True)
        if asked.decision == "approve":
            return APPROVED
        if asked.decision == "deny":
            return Done("The human refused this call.", failed=True)
        return _wait_for(tx, asked, call, requests.limit_of_call(ctx.team, is_urgent=parks))

    def _is_allowed(self, tx: Tx, ctx: RunContext, call: ToolCall, ruling: "Ruling") -> bool:
        """Whether a person has allowed the call without a request: by a grant, or by having
        named the address that it opens, anywhere on the team."""
        tool = self.tools.get(call.name)
        if tool is not None and tool.properties.opens_address and not ctx.node.kind.no_ways_out:
            wanted = links.requested(addresses.of_call(call))
            if wanted is not None and team_hosts.was_named(tx, ctx.team.id, wanted):
                return True
        return requests.use_grant(tx, ctx.lease, call, ruling.way_out)


def first_match(
    rules: Sequence[Rule], tool: Tool | None, name: str, spellings: Sequence[str]
) -> int | None:
    """Return the place of the first rule that applies to a call of a tool, whose first argument
    may be written in several ways; None if no rule does."""
    for place, rule in enumerate(rules):
        if fnmatchcase(name, rule.tool) and any(
            fnmatchcase(spelling, rule.pattern) and not _exceeds(rule, tool, spelling)
            for spelling in spellings
        ):
            return place
    return None


def _exceeds(rule: Rule, tool: Tool | None, command: str) -> bool:
    """Whether another command is chained to the one that the rule allows."""
    return (
        rule.action == "allow"
        and tool is not None
        and tool.properties.runs_commands
        and rule.pattern != "*"
        and _CHAINED.search(command) is not None
    )


def _wait_for(tx: Tx, asked: Message, call: ToolCall, limit: timedelta | None) -> Answer:
    """Return the wait for a decision, or its late answer if a call has waited for it already."""
    late, left_s = "", None
    if limit is not None:
        minutes = round(limit.total_seconds() / 60)
        late = _LATE.format(minutes=minutes, id=asked.id)
        left_s = (asked.created_at + limit - tx.now).total_seconds()
        if left_s <= 0:
            requests.unbind(tx, asked.id)
            return Done(late, failed=True)
    deliveries.queue_once(tx, asked)
    on = WaitingOn("approval", asked.id)
    return Pending(on, f"{ASKED_PERSON} to approve {call.name}", left_s, late)


def _cannot_ask(tx: Tx, ctx: RunContext, ruling: Ruling) -> str | None:
    """Return why no person may be asked about this call; None if one may."""
    kind = ctx.node.kind
    if kind.no_requests or ruling.way_out is None:
        return kind.no_requests or None
    return kind.no_ways_out or requests.refusal(tx, ctx.node.id)


def _why(ctx: RunContext, way_out: WayOut | None) -> str:
    if way_out is None:
        return ""
    if not ctx.label:
        return f" I ask because {way_out.why}."
    return (
        f" I ask because {way_out.why}, and I have read words from {ctx.label}, which nobody on "
        "the team wrote: they may be behind this call."
    )


def _spellings(ctx: RunContext, call: ToolCall, *, is_added: bool) -> list[str]:
    """Return the call's first argument; a path in every form in which a rule may name it. A path in
    a call of an added tool is none of the team's."""
    # A deny rule for `PLAN.md` must not be evaded by `./PLAN.md`: `locate` gives every spelling of
    # a path the same place.
    name, value = next(iter(call.arguments.items()), ("", ""))
    if name != "path" or is_added:
        return [str(value).strip()]
    spot = ctx.scope.locate(str(value))
    rest = "/".join(spot.rest)
    if spot.area is Area.OWN_SCRATCH:
        return [rest, f"scratch/{rest}", f"{spot.folder}/{rest}"]
    return [f"{spot.folder}/{rest}".strip("/")]
