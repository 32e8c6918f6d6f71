"""Grants: persons allow calls for longer than one time, and revoke what they allowed.

Only routes and commands of persons call these verbs. `use` is what a call may do with a grant.
"""

import re
from datetime import datetime, timedelta

from agiraph.domain.chat import ToolCall
from agiraph.domain.errors import Conflict, NotFound, Refused
from agiraph.domain.events.team import GrantMade, GrantRevoked, GrantUsed
from agiraph.domain.grants import (
    KIND_OF_SINK,
    LIMITED_NETWORK,
    REACH_LASTS,
    Grant,
    GrantKind,
)
from agiraph.domain.ids import MessageId, NodeId, PersonId, TeamId, new_id
from agiraph.domain.messages import Message
from agiraph.domain.sinks import WayOut
from agiraph.redaction import redact
from agiraph.services.board import requests
from agiraph.store import grants, teams
from agiraph.store.grants import GRANTS
from agiraph.store.messages import MESSAGES
from agiraph.store.teams import TEAMS
from agiraph.store.tx import Tx

MAX_PATTERN = 10_000
"""Characters of a pattern; a command may be long."""
LONGEST = timedelta(days=3650)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}|\[?[0-9a-f:]+\]?")
_WITH_SUBDOMAINS = re.compile(rf"\*\.(?:{_LABEL}\.)+{_LABEL}")
_NAME = re.compile(r"[\w@][\w@.:/+-]{0,199}")
NOT_A_HOST = (
    "{pattern!r} is not a host: write it alone, such as docs.python.org, or *.python.org to "
    "include its subdomains."
)
NO_ALWAYS = (
    "This way out is decided call by call: approve this one alone. A rule of the team can allow "
    "such calls (PATCH /teams/{team} with `permissions`)."
)
FOLDER = "folder:"
"""Before the name or path of a given folder that a `trust` grant names."""
ONE_RUN = "Whether a program runs again is decided run by run: approve this one alone."


def make(
    tx: Tx,
    *,
    kind: GrantKind,
    pattern: str,
    person_id: PersonId,
    team_id: TeamId | None,
    until: datetime | None = None,
    from_ask: MessageId | None = None,
) -> Grant:
    """Allow this from now on, in one team or (without a team) in the whole home.

    Return the grant that does so; that may be an older one that is in force. A `reach` ends after
    30 days unless the person names another end.
    """
    if kind == "call":
        raise Refused("A grant for one call comes from a request; approve the request instead.")
    pattern = _checked_pattern(kind, pattern)
    if kind == "trust" and pattern.startswith(FOLDER):
        pattern = _trusted_folder(tx, team_id, pattern.removeprefix(FOLDER).strip())
    if until is not None and not tx.now < until <= tx.now + LONGEST:
        raise Refused(f"A grant ends in the future, within ten years, not at {until.isoformat()}.")
    if until is None and kind == "reach":
        until = tx.now + REACH_LASTS
    return _insert(tx, kind, pattern, person_id, team_id, until=until, from_ask=from_ask)


def _trusted_folder(tx: Tx, team_id: TeamId | None, named: str) -> str:
    """Return what a grant names that trusts a given folder: its real path, so that another folder
    which gets the same name later is not trusted."""
    among = teams.every(tx, limit=10_000) if team_id is None else [TEAMS.get(tx, team_id)]
    for folder in (one for team in among for one in team.folders):
        # Names of folders belong to a team; without a team only a path says which one is meant.
        if folder.path == named or (folder.name == named and team_id is not None):
            return folder.source
    given = [one for team in among for one in team.folders]
    known = ", ".join(one.source if team_id is None else FOLDER + one.name for one in given)
    raise Refused(f"{FOLDER}{named} is no folder that was given. There are: {known or 'none'}.")


def offer(request: Message) -> tuple[GrantKind, str] | None:
    """Return what `always` would allow for a request: the kind of grant, and what it names.

    It names no more than the request does: the host, the exact command or the tool; for a request
    that a rule of the team made, the call with exactly these arguments. None if each such call is
    decided by itself, or for a request to run a program again: that is decided run by run.
    """
    if request.call is None or request.ref is None or requests.is_about_a_rerun(request):
        return None
    if request.way_out is None:
        return "call", requests.fingerprint_of(request)
    kind = KIND_OF_SINK.get(request.way_out.sink)
    return None if kind is None else (kind, _target(kind, request.call, request.way_out))


def always(tx: Tx, request: Message, *, person_id: PersonId) -> Grant:
    """Make the grant that allows what a request asks for, in its team, from now on (`offer`)."""
    if request.call is None or request.ref is None:
        raise Refused(f"{request.id} asks for no call, so nothing can be allowed for good.")
    if requests.is_about_a_rerun(request):
        raise Refused(ONE_RUN)
    if (offered := offer(request)) is None:
        raise Refused(NO_ALWAYS.format(team=request.team_id))
    kind, pattern = offered
    if kind == "call":
        return _insert(tx, kind, pattern, person_id, request.team_id, from_ask=request.id)
    return make(
        tx,
        kind=kind,
        pattern=pattern,
        person_id=person_id,
        team_id=request.team_id,
        from_ask=request.id,
    )


def revoke(tx: Tx, grant_id: str, *, team_id: TeamId | None = None) -> Grant:
    """End a grant. With `team_id` only one of that team, or of the whole home."""
    grant = GRANTS.find(tx, grant_id, lock=True)
    if grant is None or (team_id is not None and grant.team_id not in (None, team_id)):
        raise NotFound("grant", grant_id, known="`agiraph grants TEAM` lists them.")
    if not grants.revoke(tx, grant_id):
        raise Conflict(f"{grant_id} was revoked at {grant.revoked_at:%Y-%m-%d %H:%M} UTC.")
    if grant.team_id is not None:
        tx.emit(grant.team_id, GrantRevoked(grant_id=grant_id))
    return GRANTS.get(tx, grant_id)


def covers(grant: Grant, request: Message, *, now: datetime) -> bool:
    """Whether a grant allows the call of a request."""
    if request.call is None or grant.team_id not in (None, request.team_id):
        return False
    named = _names(requests.fingerprint_of(request), request.call, request.way_out)
    return any(grant.allows(kind, target, now=now) for kind, target in named)


def use(
    tx: Tx, *, team_id: TeamId, node_id: NodeId, call: ToolCall, way_out: WayOut | None
) -> Grant | None:
    """Count a use of a grant that allows this call, and return the grant; None if there is none."""
    named = _names(requests.fingerprint(call), call, way_out)
    for grant in grants.in_force(tx, team_id):
        fits = any(grant.allows(kind, target, now=tx.now) for kind, target in named)
        if not fits or not grants.use(tx, grant):
            continue
        if grant.uses_left is not None and grant.from_ask is not None:
            # The approval belongs to this call from now on: a crash before the call is made must
            # not cost the person's only yes.
            MESSAGES.update(tx, grant.from_ask, ref=requests.ref(node_id, call))
        used = GrantUsed(grant_id=grant.id, node_id=node_id, call_id=call.id, tool=call.name)
        tx.emit(team_id, used)
        return grant
    return None


def _names(fingerprint: str, call: ToolCall, way_out: WayOut | None) -> list[tuple[GrantKind, str]]:
    """Return what a grant may name to allow a call."""
    named: list[tuple[GrantKind, str]] = [("call", fingerprint)]
    kind = None if way_out is None else KIND_OF_SINK.get(way_out.sink)
    if way_out is not None and kind is not None:
        named.append((kind, _target(kind, call, way_out)))
        if way_out.sink in LIMITED_NETWORK:
            # A grant for the command with any network also allows it with less network.
            named.append((kind, way_out.target))
    return named


def _target(kind: GrantKind, call: ToolCall, way_out: WayOut) -> str:
    """Return what the grant for a call names; of a command with a limited network also which one,
    so that the same words with more network ask again."""
    if kind == "tool":
        return call.name
    limited = LIMITED_NETWORK.get(way_out.sink)
    return way_out.target if limited is None else f"network={limited} {way_out.target}"


def _insert(
    tx: Tx,
    kind: GrantKind,
    pattern: str,
    person_id: PersonId,
    team_id: TeamId | None,
    *,
    until: datetime | None = None,
    from_ask: MessageId | None = None,
    uses: int | None = None,
) -> Grant:
    if team_id is not None:
        TEAMS.get(tx, team_id, lock=True)  # two persons who allow the same make one grant
    for known in grants.in_force(tx, team_id) if team_id is not None and uses is None else []:
        same = (known.kind, known.pattern, known.team_id, known.until) == (
            *(kind, pattern, team_id, until),
        )
        if same and known.uses_left is None:
            return known
    grant = Grant(
        id=new_id("grant"),
        kind=kind,
        pattern=pattern,
        person_id=person_id,
        created_at=tx.now,
        team_id=team_id,
        until=until,
        uses_left=uses,
        from_ask=from_ask,
    )
    GRANTS.insert(tx, grant)
    if team_id is not None:
        made = GrantMade(grant_id=grant.id, kind=kind, pattern=pattern, from_ask=from_ask)
        tx.emit(team_id, made)
    return grant


def _checked_pattern(kind: GrantKind, pattern: str) -> str:
    """Return the pattern as it is compared; raise `Refused` if it names nothing exact."""
    if kind != "command":
        pattern = pattern.strip()
    if not pattern.strip() or len(pattern) > MAX_PATTERN:
        raise Refused(f"A grant names what it allows, in 1 to {MAX_PATTERN:,} characters.")
    if redact(pattern) != pattern:
        raise Refused("That holds a secret, which no grant keeps. Allow the call itself instead.")
    if kind in ("command", "trust"):  # what a program says is trusted by the words that run it
        return pattern
    if kind in ("read", "reach"):
        pattern = pattern.lower().removesuffix(".")
        if not _HOST.fullmatch(pattern) and not _WITH_SUBDOMAINS.fullmatch(pattern):
            raise Refused(NOT_A_HOST.format(pattern=pattern[:200]))
        return pattern
    if not _NAME.fullmatch(pattern):
        raise Refused(f"{pattern[:200]!r} is not a name: write the exact name, without wildcards.")
    return pattern
