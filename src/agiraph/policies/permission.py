"""Permission: which calls may be made, which may not, and which a person must decide on."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agiraph.domain.agents import Rule
from agiraph.domain.chat import ToolCall
from agiraph.domain.outcomes import Answer, Done, Pending
from agiraph.home.scopes import Place
from agiraph.policies import taint
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
    """The team's rules, in order; the first that matches decides, and no match allows.

    Calls come with their arguments in the order of the tool's signature, whatever order the
    model wrote them in: the first of them is what a rule is about.
    """

    tools: Mapping[str, Tool]

    def matching(self, ctx: RunContext, call: ToolCall) -> Rule | None:
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

    def settled(self, ctx: RunContext, call: ToolCall) -> Answer | None:
        """The answer to a call that no person needs to decide on; None if it may be made."""
        rule = self.matching(ctx, call)
        if rule is None and ctx.node.lane == "reply" and self._objection(ctx, call) is not None:
            return Done(NOT_IN_A_REPLY, failed=True)
        if rule is None or rule.action != "deny":
            return None
        denied = f"Not allowed: this team's rules deny {call.name} on {rule.pattern!r}."
        return Done(f"{denied} Do it another way, or ask the human.", failed=True)

    def needs_approval(self, ctx: RunContext, call: ToolCall) -> bool:
        rule = self.matching(ctx, call)
        if rule is not None:
            return rule.action == "ask"
        return self._objection(ctx, call) is not None

    def vouches(self, ctx: RunContext, call: ToolCall) -> bool:
        """Whether the team's rules allow this call in so many words, whatever led to it."""
        rule = self.matching(ctx, call)
        return rule is not None and rule.action == "allow"

    def approve(self, tx: Tx, ctx: RunContext, call: ToolCall) -> Answer:
        """Ask for approval of this very call, or say what was decided before."""
        asked = approvals.find(tx, ctx.node.id, call)
        if asked is None and taint.was_named_by_person(tx, ctx, self.tools.get(call.name), call):
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
        return Pending(f"approval:{asked.id}", f"asked the human to approve {call.name}")

    def _why(self, ctx: RunContext, call: ToolCall) -> str:
        if (objection := self._objection(ctx, call)) is None:
            return ""
        return (
            f" I ask because {objection}, and I have read words from {ctx.tainted_by} that nobody "
            "vouches for: they may be behind this call."
        )

    def _objection(self, ctx: RunContext, call: ToolCall) -> str | None:
        return taint.objection(ctx, self.tools.get(call.name), call)

    def _exceeds(self, rule: Rule, call: ToolCall, command: str) -> bool:
        """Whether a command does more than what is allowed: something is chained to it."""
        tool = self.tools.get(call.name)
        return (
            rule.action == "allow"
            and tool is not None
            and tool.properties.runs_commands
            and rule.pattern != "*"
            and _CHAINED.search(command) is not None
        )


def _spellings(ctx: RunContext, call: ToolCall) -> list[str]:
    """What a call is about, its first argument; a path in every way a rule may have it."""
    name, value = next(iter(call.arguments.items()), ("", ""))
    if name != "path":
        return [str(value).strip()]
    spot = ctx.scope.locate(str(value))
    rest = "/".join(spot.rest)
    if spot.place is Place.OWN_SCRATCH:
        return [rest, f"scratch/{rest}", f"{spot.folder}/{rest}"]
    return [f"{spot.folder}/{rest}".strip("/")]
