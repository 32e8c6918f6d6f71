"""Search: finds what holds all of some words, in one team or in all of them, newest first.

Names, tasks, messages and steps are compared by their letters, so that a part of a word is enough.
Notes, pages, insights and reports are in the full-text index (`passages`).
"""

import re
from collections.abc import Sequence

from agiraph.domain.found import Found
from agiraph.domain.ids import SYSTEM, AgentId, PersonId, TeamId
from agiraph.domain.persons import is_person
from agiraph.store import passages
from agiraph.store.messages import MESSAGES
from agiraph.store.nodes import NODES
from agiraph.store.rows import from_micros, to_label
from agiraph.store.teams import AGENTS, TEAMS
from agiraph.store.tx import Tx

NEWEST_TURNS = 20_000
"""How many of the newest turns are searched. Turns are long, and no index holds their text."""
_TEXT = 4000
"""Characters of a turn that are compared and shown."""
_LETTERS = "abcdefgh"
"""Distinguishes the parameters of the words, whose names may hold only letters and underscores.
Words beyond the eighth are ignored."""
_IN_TEAM = "(:team = '' or {column} = :team)"


def names(tx: Tx, words: Sequence[str], *, team: TeamId | None, limit: int) -> list[Found]:
    """Return teams and agents by name, goal or role."""
    held, named = _all_in("name || ' ' || goal", words)
    where = f"{_IN_TEAM.format(column='id')} and {held} order by created_at desc limit :limit"
    found = [
        Found(kind="team", team_id=t.id, ref=t.id, title=t.name, text=t.goal, at=t.created_at)
        for t in TEAMS.select(tx, where, team=team or "", limit=limit, **named)
    ]
    held, named = _all_in("name || ' ' || role", words)
    where = f"{_IN_TEAM.format(column='team_id')} and {held} order by id desc limit :limit"
    return found + [
        Found(
            kind="agent",
            team_id=a.team_id,
            ref=a.id,
            title=a.name,
            text=a.role,
            at=a.created_at,
            agent_id=a.id,
        )
        for a in AGENTS.select(tx, where, team=team or "", limit=limit, **named)
    ]


def work(tx: Tx, words: Sequence[str], *, team: TeamId | None, limit: int) -> list[Found]:
    """Return nodes by title, task and result, and their published files by name."""
    held, named = _all_in("title || ' ' || task || ' ' || coalesce(result, '')", words)
    where = (
        f"{_IN_TEAM.format(column='team_id')} and lane = 'work' and {held}"
        " order by id desc limit :limit"
    )
    found = [
        Found(
            kind="work",
            team_id=n.team_id,
            ref=n.id,
            title=n.title,
            text=f"{n.task}\n\n{n.result or ''}",
            at=n.created_at,
            agent_id=n.assignee_id,
            node_id=n.id,
            label=n.label,
        )
        for n in NODES.select(tx, where, team=team or "", limit=limit, **named)
    ]
    held, named = _all_in("manifest", words)
    where = f"{_IN_TEAM.format(column='team_id')} and {held} order by id desc limit :limit"
    holders = NODES.select(tx, where, team=team or "", limit=limit, **named)
    files = [
        Found(
            kind="file",
            team_id=n.team_id,
            ref=f"nodes/{n.id}/published/{name}",
            title=name,
            text=n.title,
            at=n.ended_at or n.created_at,
            agent_id=n.assignee_id,
            node_id=n.id,
            label=n.label,
        )
        for n in holders
        for name in n.manifest
        if all(word in name.lower() for word in words)
    ]
    return found + files[:limit]


def messages(
    tx: Tx, words: Sequence[str], *, person: PersonId, team: TeamId | None, limit: int
) -> list[Found]:
    """Return the messages that a person wrote or got."""
    held, named = _all_in("title || ' ' || text", words)
    where = (
        f"{_IN_TEAM.format(column='team_id')} and (sender = :person or recipient = :person)"
        f" and {held} order by id desc limit :limit"
    )
    rows = MESSAGES.select(tx, where, team=team or "", person=person, limit=limit, **named)
    return [
        Found(
            kind="message",
            team_id=m.team_id,
            ref=m.id,
            title=m.title,
            text=m.text,
            at=m.created_at,
            agent_id=_agent(m.recipient if m.sender == person else m.sender),
            node_id=m.node_id,
            label=m.label,
        )
        for m in rows
    ]


def steps(tx: Tx, words: Sequence[str], *, team: TeamId | None, limit: int) -> list[Found]:
    """Return turns of work that hold all words, among the newest ones. Prompts are left out: they
    repeat what is found elsewhere."""
    held, named = _all_in("u.said", words)
    rows = tx.all(
        "select t.team_id, t.id, t.label, t.agent_id, u.node_id, u.said, u.at from"
        f" (select place, node_id, at, substr(text || ' ' || coalesce(calls, ''), 1, {_TEXT})"
        " as said from turns where role in ('assistant', 'tool')"
        f" order by at desc limit {NEWEST_TURNS}) u"
        " join threads t on t.number = u.place / 4294967296"
        f" where t.kind = 'work' and {_IN_TEAM.format(column='t.team_id')} and {held}"
        " order by u.at desc limit :limit",
        team=team or "",
        limit=limit,
        **named,
    )
    return [
        Found(
            kind="step",
            team_id=team_id,
            ref=thread_id,
            title="",
            text=text,
            at=from_micros(at),
            agent_id=agent_id,
            node_id=node_id,
            thread_id=thread_id,
            label=to_label(label),
        )
        for team_id, thread_id, label, agent_id, node_id, text, at in rows
    ]


def passages_with(tx: Tx, query: str, *, team: TeamId | None, limit: int) -> list[Found]:
    """Return sections of notes, pages, insights and reports of any owner, best match first."""
    return [
        Found(
            kind=p.kind,
            team_id=p.team_id,
            ref=p.ref,
            title=p.title,
            text=p.text,
            at=p.created_at,
            label=p.label,
        )
        for p in passages.find_anywhere(tx, query, team_id=team, limit=limit)
    ]


def _agent(sender: str) -> AgentId | None:
    return None if is_person(sender) or sender == SYSTEM else AgentId(sender)


def _all_in(expression: str, words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the condition that a text holds all words, and its parameters."""
    # `%` and `_` are wildcards of LIKE.
    plain = [re.sub("([!%_])", r"!\1", word) for word in words]
    named = {f"word_{letter}": f"%{word}%" for letter, word in zip(_LETTERS, plain, strict=False)}
    return " and ".join(f"lower({expression}) like :{name} escape '!'" for name in named), named
