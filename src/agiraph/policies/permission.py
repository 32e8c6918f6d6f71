"""Permission: which calls may be made, which may not, and which a person must decide on."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agiraph.domain.chat import ToolCall
from agiraph.domain.outcomes import Answer, Done, Pending
from agiraph.domain.people import Rule
from agiraph.home.scopes import Place
from agiraph.services import mail
from agiraph.store import messages
from agiraph.store.tx import Tx
from agiraph.tools.context import RunContext

SHOWN = 2000
"""How much of an argument a person is shown when asked for approval."""

_CHAINED = re.compile(r"[;&|<>`\n]|\$\(")


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """The team's rules, in order; the first that matches decides, and no match allows.

    Calls come with their arguments in the order of the tool's signature, whatever order the
    model wrote them in: the first of them is what a rule is about.
    """

    def matching(self, ctx: RunContext, call: ToolCall) -> Rule | None:
        if not ctx.team.permissions:
            return None
        spellings = _spellings(ctx, call)
        for rule in ctx.team.permissions:
            if fnmatchcase(call.name, rule.tool) and any(
                fnmatchcase(spelling, rule.pattern) and not _exceeds(rule, call, spelling)
                for spelling in spellings
            ):
                return rule
        return None

    def settled(self, ctx: RunContext, call: ToolCall) -> Answer | None:
        """The answer to a call that no person needs to decide on; None if it may be made."""
        rule = self.matching(ctx, call)
        if rule is None or rule.action != "deny":
            return None
        denied = f"Not allowed: this team's rules deny {call.name} on {rule.pattern!r}."
        return Done(f"{denied} Do it another way, or ask the human.", failed=True)

    def needs_approval(self, ctx: RunContext, call: ToolCall) -> bool:
        rule = self.matching(ctx, call)
        return rule is not None and rule.action == "ask"


def approve(tx: Tx, ctx: RunContext, call: ToolCall) -> Answer:
    """Ask for approval of this very call, or say what was decided before."""
    key = mail.call_key(ctx.node.id, call)
    asked = messages.approval(tx, key)
    if asked is None:
        given = ", ".join(f"{name}={_shown(value)}" for name, value in call.arguments.items())
        asked = mail.ask(
            tx,
            ctx.lease,
            text=f"May I call {call.name}({given})?",
            kind="approval",
            options=("approve", "deny"),
            ref=key,
        )
    if asked.decision == "approve":
        return Done("approved")
    if asked.decision == "deny":
        return Done("The human refused this call.", failed=True)
    return Pending(f"approval:{asked.id}", f"asked the human to approve {call.name}")


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


def _exceeds(rule: Rule, call: ToolCall, command: str) -> bool:
    """Whether a command does more than what is allowed: something is chained to it."""
    return (
        rule.action == "allow"
        and call.name == "bash"
        and rule.pattern != "*"
        and _CHAINED.search(command) is not None
    )


def _shown(value: object) -> str:
    said = repr(value)
    if len(said) <= SHOWN:
        return said
    return f"{said[:SHOWN]}… ({len(said):,} characters in all)"
