"""Permission: which calls may be made, which may not, and which a person must decide on."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from agiraph.domain.chat import ToolCall
from agiraph.domain.outcomes import Answer, Done, Pending
from agiraph.domain.people import Rule
from agiraph.services import mail
from agiraph.store import messages
from agiraph.store.tx import Tx
from agiraph.tools.context import RunContext


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """The team's rules, in order; the first that matches decides, and no match allows."""

    def matching(self, ctx: RunContext, call: ToolCall) -> Rule | None:
        subject = _subject(call.arguments)
        for rule in ctx.team.permissions:
            if fnmatchcase(call.name, rule.tool) and fnmatchcase(subject, rule.pattern):
                return rule
        return None

    def settled(self, ctx: RunContext, call: ToolCall) -> Answer | None:
        """The answer to a call that no person needs to decide on; None if it may be made."""
        rule = self.matching(ctx, call)
        if rule is None or rule.action != "deny":
            return None
        return Done(f"Not allowed: {call.name} on {rule.pattern!r} is denied here.", failed=True)

    def needs_approval(self, ctx: RunContext, call: ToolCall) -> bool:
        rule = self.matching(ctx, call)
        return rule is not None and rule.action == "ask"


def approve(tx: Tx, ctx: RunContext, call: ToolCall) -> Answer:
    """Ask for approval of this very call, or say what was decided before."""
    key = mail.call_key(ctx.node.id, call)
    asked = messages.approval(tx, key)
    if asked is None:
        text = f"May I call {call.name} with {_subject(call.arguments)!r}?"
        asked = mail.ask(
            tx, ctx.lease, text=text, kind="approval", options=("approve", "deny"), ref=key
        )
    if asked.decision == "approve":
        return Done("approved")
    if asked.decision == "deny":
        return Done("The human refused this call.", failed=True)
    return Pending(f"approval:{asked.id}", f"asked the human to approve {call.name}")


def _subject(arguments: dict[str, Any]) -> str:
    """What a call is about: its first argument, as a command or a path is."""
    return str(next(iter(arguments.values()), ""))
