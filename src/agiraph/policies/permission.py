"""Permission: decides which tool calls are allowed, denied, or need a person's approval."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agiraph.domain.agents import Rule
from agiraph.domain.chat import ToolCall
from agiraph.domain.outcomes import Answer, Done, Pending
from agiraph.domain.sinks import WayOut
from agiraph.domain.waits import WaitingOn
from agiraph.home.scopes import Area
from agiraph.policies import provenance
from agiraph.run_context import RunContext
from agiraph.services.board import approvals
from agiraph.services.mail import bus
from agiraph.store.tx import Tx
from agiraph.tools.base import Tool

NOT_IN_A_REPLY = (
    "Not in a reply: this conversation holds words that nobody vouches for, so the human has to "
    "agree to this call. Start it as work; there they are asked."
)

_CHAINED = re.compile(r"[;&|<>`\n]|\$\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What becomes of a call. With neither a refusal nor a person to ask, it is made."""

    refusal: str | None = None
    needs_person: bool = False
    is_vouched_for: bool = False
    """Whether a rule of the team explicitly allows it, whatever the thread has read."""
    way_out: WayOut | None = None
    """Why a person is asked; None if a rule of the team says so."""


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """The team's rules, in order: the first match decides, and a call without a match is allowed.

    A rule is compared with the first argument of the tool's signature. The caller passes calls with
    their arguments in that order, because a model may write them in any order.
    """

    tools: Mapping[str, Tool]

    def matching(self, ctx: RunContext, call: ToolCall) -> Rule | None:
        """Return the first rule that applies to the call."""
        if not ctx.team.permissions:
            return None
        spellings = _spellings(ctx, call)
        for rule in ctx.team.permissions:
            if fnmatchcase(call.name, rule.tool) and any(
                fnmatchcase(spelling, rule.pattern) and not self._exceeds(rule, call, spelling)
                for spelling in spellings
            ):
                return rule
        return None

    async def rule_on(self, ctx: RunContext, call: ToolCall) -> "Ruling":
        """Decide on a call: by the team's first matching rule, else by its trust if the thread
        holds words from outside the team and the call takes a way out of it."""
        rule = self.matching(ctx, call)
        if rule is not None:
            if rule.action == "deny":
                denied = f"Not allowed: this team's rules deny {call.name} on {rule.pattern!r}."
                return Ruling(refusal=f"{denied} Do it another way, or ask the human.")
            return Ruling(needs_person=rule.action == "ask", is_vouched_for=rule.action == "allow")
        way_out = await provenance.guarded_way_out(ctx, self.tools.get(call.name), call)
        if way_out is not None and ctx.node.lane == "reply":
            return Ruling(refusal=NOT_IN_A_REPLY)
        return Ruling(needs_person=way_out is not None, way_out=way_out)

    def approve(self, tx: Tx, ctx: RunContext, call: ToolCall, ruling: "Ruling") -> Answer:
        """Ask a person to approve this call, or return the decision they made before."""
        asked = approvals.find(tx, ctx.node.id, call)
        tool = self.tools.get(call.name)
        if asked is None and provenance.was_named_by_person(tx, ctx, tool, call):
            return Done("approved")
        if asked is None:
            asked = bus.ask(
                tx,
                ctx.lease,
                text=f"May I call {call.name}?{_why(ctx, ruling.way_out)}",
                kind="approval",
                options=("approve", "deny"),
                ref=approvals.ref(ctx.node.id, call),
                call=call,
            )
        if asked.decision == "approve":
            return Done("approved")
        if asked.decision == "deny":
            return Done("The human refused this call.", failed=True)
        return Pending(WaitingOn("approval", asked.id), f"asked the human to approve {call.name}")

    def _exceeds(self, rule: Rule, call: ToolCall, command: str) -> bool:
        """Whether another command is chained to the one that the rule allows."""
        tool = self.tools.get(call.name)
        return (
            rule.action == "allow"
            and tool is not None
            and tool.properties.runs_commands
            and rule.pattern != "*"
            and _CHAINED.search(command) is not None
        )


def _why(ctx: RunContext, way_out: WayOut | None) -> str:
    if way_out is None:
        return ""
    return (
        f" I ask because {way_out.why}, and I have read words from {ctx.label} that nobody "
        "vouches for: they may be behind this call."
    )


def _spellings(ctx: RunContext, call: ToolCall) -> list[str]:
    """Return the call's first argument; a path in every form in which a rule may name it."""
    # A deny rule for `PLAN.md` must not be evaded by `./PLAN.md`: `locate` gives every spelling of
    # a path the same place.
    name, value = next(iter(call.arguments.items()), ("", ""))
    if name != "path":
        return [str(value).strip()]
    spot = ctx.scope.locate(str(value))
    rest = "/".join(spot.rest)
    if spot.area is Area.OWN_SCRATCH:
        return [rest, f"scratch/{rest}", f"{spot.folder}/{rest}"]
    return [f"{spot.folder}/{rest}".strip("/")]
