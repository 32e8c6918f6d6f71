"""Permission: decides which tool calls are allowed, denied, or need a person's approval."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agiraph.domain.agents import Rule
from agiraph.domain.chat import ToolCall
from agiraph.domain.outcomes import Answer, Done, Pending
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

    def refusal(self, ctx: RunContext, call: ToolCall) -> Answer | None:
        """Return the answer to a call that is denied; None if it is allowed or needs approval."""
        rule = self.matching(ctx, call)
        if rule is None and ctx.node.lane == "reply" and self._objection(ctx, call) is not None:
            return Done(NOT_IN_A_REPLY, failed=True)
        if rule is None or rule.action != "deny":
            return None
        denied = f"Not allowed: this team's rules deny {call.name} on {rule.pattern!r}."
        return Done(f"{denied} Do it another way, or ask the human.", failed=True)

    def needs_approval(self, ctx: RunContext, call: ToolCall) -> bool:
        """Whether a person must approve the call.

        Either a rule of the team says so, or the thread holds words from outside the team and the
        tool objects to this call because of them.
        """
        rule = self.matching(ctx, call)
        if rule is not None:
            return rule.action == "ask"
        return self._objection(ctx, call) is not None

    def vouches(self, ctx: RunContext, call: ToolCall) -> bool:
        """Whether a rule of the team explicitly allows this call, whatever the thread has read."""
        rule = self.matching(ctx, call)
        return rule is not None and rule.action == "allow"

    def approve(self, tx: Tx, ctx: RunContext, call: ToolCall) -> Answer:
        """Ask a person to approve this call, or return the decision they made before."""
        asked = approvals.find(tx, ctx.node.id, call)
        tool = self.tools.get(call.name)
        if asked is None and provenance.was_named_by_person(tx, ctx, tool, call):
            return Done("approved")
        if asked is None:
            asked = bus.ask(
                tx,
                ctx.lease,
                text=f"May I call {call.name}?{self._why(ctx, call)}",
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

    def _why(self, ctx: RunContext, call: ToolCall) -> str:
        if (objection := self._objection(ctx, call)) is None:
            return ""
        return (
            f" I ask because {objection}, and I have read words from {ctx.label} that nobody "
            "vouches for: they may be behind this call."
        )

    def _objection(self, ctx: RunContext, call: ToolCall) -> str | None:
        return provenance.objection(ctx, self.tools.get(call.name), call)

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
