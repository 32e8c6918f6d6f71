"""Grants: what a person has allowed for longer than one call.

Only a person makes a grant, and only the database holds them: no argument of a call and no file
in a team's home grants anything. A grant names exactly what it allows, so a changed command asks
again.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from agiraph.core.domain.ids import MessageId, PersonId, TeamId
from agiraph.core.domain.provenance.sinks import Sink
from agiraph.core.domain.value import value

GrantKind = Literal["read", "reach", "packages", "tool", "command", "trust", "call"]
"""read: open any address of a host. reach: commands may talk to a host. packages: install a package
of this name. tool: call a tool. command: run these exact words. trust: what a program or a host
says, or what lies in a given folder, no longer counts as untrusted. call: one call with exactly
these arguments, made from a request for it."""


class Offer(NamedTuple):
    """What a grant would allow: its kind, and what it would name."""

    kind: GrantKind
    pattern: str


REACH_LASTS = timedelta(days=30)
"""How long commands may talk to a host, unless the person names another end."""
ASK_LASTS = timedelta(days=7)
"""How long work that begins by itself does not ask again what nobody has decided on in earlier
work."""

KIND_OF_SINK: Mapping[Sink, GrantKind] = {
    Sink.SEARCH: "tool",
    Sink.SEARCH_BEYOND_LIMIT: "tool",
    Sink.LINK: "read",
    Sink.LINK_BEYOND_LIMIT: "read",
    Sink.READING_HOST: "read",
    Sink.MADE_UP_ADDRESS: "read",
    Sink.PACKAGES_COMMAND: "command",
    Sink.HOSTS_COMMAND: "command",
    Sink.NETWORK_COMMAND: "command",
    Sink.PRIVATE_SEND: "reach",
    Sink.UNCONFINED_COMMAND: "command",
    Sink.PROGRAM: "command",
    Sink.WAKE_SELF: "tool",
    Sink.WAKE_BEYOND_LIMIT: "tool",
    Sink.KEEP_WORKER: "tool",
    Sink.TOOL_READS: "tool",
    Sink.TOOL_CHANGES: "tool",
    Sink.TOOL_SENDS: "tool",
}
"""The kind of the grant that opens a way out for good. The other ways are decided call by call:
who is told what, and what later work is made to read, is never the same twice."""

LIMITED_NETWORK: Mapping[Sink, str] = {
    Sink.PACKAGES_COMMAND: "packages",
    Sink.HOSTS_COMMAND: "hosts",
}
"""Commands with less than the whole network. A grant for one names the network before its words:
`network=packages make test`."""


@value
class Grant:
    id: str
    kind: GrantKind
    pattern: str
    """What it allows: a host (`*.` before it includes its subdomains), the exact command, the name
    of a tool, of a package or of a program, or `folder:` and the real path of a given folder."""
    person_id: PersonId
    created_at: datetime
    team_id: TeamId | None = None
    """None: it applies to all teams of this home."""
    until: datetime | None = None
    uses_left: int | None = None
    """How many calls it still allows; None: any number."""
    used: int = 0
    """How many calls it has allowed."""
    used_at: datetime | None = None
    """When it last allowed a call."""
    from_ask: MessageId | None = None
    """The request that the person answered with it."""
    revoked_at: datetime | None = None
    is_typed: bool = False
    """Whether the person only typed an address of the host, in the goal or in a message. Commands
    of a thread that has read a page there do not reach it: the page may be behind them."""

    def is_in_force(self, now: datetime) -> bool:
        """Whether the grant is not revoked, has not expired and has uses left."""
        is_spent = self.uses_left is not None and self.uses_left <= 0
        is_over = self.until is not None and self.until <= now
        return self.revoked_at is None and not is_spent and not is_over

    def allows(self, kind: GrantKind, target: str, *, now: datetime) -> bool:
        """Whether the grant is in force and names this target."""
        if self.kind != kind or not self.is_in_force(now):
            return False
        if kind in ("read", "reach") and self.pattern.startswith("*."):
            return target == self.pattern[2:] or target.endswith(self.pattern[1:])
        return target == self.pattern
