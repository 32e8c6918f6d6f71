"""Search: finds what holds all of some words, in one team or in all of them, newest first.

Names, tasks, messages and steps are compared by their letters, so that a part of a word is enough.
Notes, pages, insights and reports are in the full-text index (`passages`).
"""

import base64
from collections.abc import Callable, Sequence

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.ids import SYSTEM, AgentId, NodeId, PersonId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.records.attached_files import path_of
from agiraph.core.domain.records.found import Found, describe_calls
from agiraph.core.domain.work import WorkNode
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import from_json, from_micros, holds_all, to_label
from agiraph.core.store.teams import AGENTS, TEAMS
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx

NEWEST_TURNS = 20_000
"""How many of the newest turns are searched. Turns are long, and no index holds their text."""
NEWEST_ATTACHED = 50
"""How many of the newest messages with attached files are searched."""
_LONGEST_ATTACHED = 225_000
"""Bytes of a message's attached files above which they are left out."""
_TEXT = 4000
"""Characters of a turn that are compared and shown."""
_IN_TEAM = "(:team = '' or {column} = :team)"


def names(tx: Tx, words: Sequence[str], *, team: TeamId | None, limit: int) -> list[Found]:
    """Return the teams and agents whose name, goal or role contains all words."""
    held, named = holds_all("name || ' ' || goal", words)
    where = f"{_IN_TEAM.format(column='id')} and {held} order by created_at desc limit :limit"
    found = [
        Found(kind="team", team_id=t.id, ref=t.id, title=t.name, text=t.goal, at=t.created_at)
        for t in TEAMS.select(tx, where, team=team or "", limit=limit, **named)
    ]
    held, named = holds_all("name || ' ' || role", words)
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


def work(
    tx: Tx,
    words: Sequence[str],
    *,
    team: TeamId | None,
    limit: int,
    name: Callable[[WorkNode], str],
) -> list[Found]:
    """Return work nodes and published files that match all words, newest first.

    A node matches by its title, task and result, a file by its name. `name` returns the title of a
    node as people see it.
    """
    held, named = holds_all("title || ' ' || task || ' ' || coalesce(result, '')", words)
    where = (
        f"{_IN_TEAM.format(column='team_id')} and lane = 'work' and {held}"
        " order by id desc limit :limit"
    )
    found = [
        Found(
            kind="work",
            team_id=n.team_id,
            ref=n.id,
            title=name(n),
            text=f"{n.task}\n\n{n.result or ''}",
            at=n.created_at,
            agent_id=n.assignee_id,
            node_id=n.id,
            label=n.label,
        )
        for n in NODES.select(tx, where, team=team or "", limit=limit, **named)
    ]
    held, named = holds_all("manifest", words)
    where = f"{_IN_TEAM.format(column='team_id')} and {held} order by id desc limit :limit"
    holders = NODES.select(tx, where, team=team or "", limit=limit, **named)
    files = [
        Found(
            kind="file",
            team_id=n.team_id,
            ref=f"nodes/{n.id}/published/{file}",
            title=file,
            text=name(n),
            at=n.ended_at or n.created_at,
            agent_id=n.assignee_id,
            node_id=n.id,
            label=n.label,
        )
        for n in holders
        for file in n.manifest
        if all(word in file.lower() for word in words)
    ]
    return found + files[:limit]


def newest_tasks(tx: Tx, *, team: TeamId | None, limit: int) -> list[tuple[TeamId, NodeId]]:
    """Return the newest work nodes, each with its team, newest first."""
    where = f"{_IN_TEAM.format(column='team_id')} and lane = 'work' order by id desc limit :limit"
    rows = tx.all(f"select team_id, id from nodes where {where}", team=team or "", limit=limit)
    return [(TeamId(team_id), NodeId(node_id)) for team_id, node_id in rows]


def messages(
    tx: Tx, words: Sequence[str], *, person: PersonId, team: TeamId | None, limit: int
) -> list[Found]:
    """Return the messages that a person wrote or got."""
    held, named = holds_all("title || ' ' || text", words)
    where = (
        f"{_IN_TEAM.format(column='team_id')} and (sender = :person or recipient = :person)"
        f" and {held} order by id desc limit :limit"
    )
    rows = MESSAGES.select(tx, where, team=team or "", person=person, limit=limit, **named)
    return [
        Found(
            kind="message",
            team_id=m.team_id,
            # The card of a question shows its answer.
            ref=m.in_reply_to if m.kind == "answer" and m.in_reply_to else m.id,
            title=m.title,
            text=m.text,
            at=m.created_at,
            agent_id=_agent(m.recipient if m.sender == person else m.sender),
            node_id=m.node_id,
            label=m.label,
        )
        for m in rows
    ]


def attachments(
    tx: Tx, words: Sequence[str], *, person: PersonId, team: TeamId | None, limit: int
) -> list[Found]:
    """Return files that a person attached to a message or got with one, of the newest messages with
    short files, by name and text, those with all words in their name first. Its `ref` is its path
    among the team's files. A file that went to several agents is there once, with the newest
    message; its path is that of the first one, as in the list of files."""
    newest = (
        "(select m.id from attached_files f join messages m on m.id = f.message_id"
        f" where {_IN_TEAM.format(column='f.team_id')}"
        " and (m.sender = :person or m.recipient = :person)"
        f" group by m.id having sum(f.size) <= {_LONGEST_ATTACHED}"
        f" order by m.id desc limit {NEWEST_ATTACHED})"
    )
    of = {"team": team or "", "person": person}
    firsts = f"select message_id, first_id from attached_files where message_id in {newest}"
    first_of = {message: first for message, first in tx.all(firsts, **of)}
    once: dict[tuple[TeamId, Attachment], tuple[Message, int]] = {}
    for m in MESSAGES.select(tx, f"id in {newest} order by id desc", **of):
        for place, file in enumerate(m.attachments):
            once.setdefault((m.team_id, file), (m, place))
    found = [
        Found(
            kind="file",
            team_id=m.team_id,
            ref=path_of(first_of[m.id], place, file.name),
            title=file.name,
            text=text,
            at=m.created_at,
            agent_id=_agent(m.recipient if m.sender == person else m.sender),
            node_id=m.node_id,
            label=m.label,
        )
        for (_, file), (m, place) in once.items()
        for text in [_attached_text(file)]
        if is_in(f"{file.name}\n{text}", words)
    ]
    return sorted(found, key=lambda one: not is_in(one.title, words))[:limit]


def is_in(text: str, words: Sequence[str]) -> bool:
    """Whether a text contains all of these words, which are in lower case."""
    lowered = text.lower()
    return all(word in lowered for word in words)


def _attached_text(file: Attachment) -> str:
    """Return what an attached file contains; empty if it is not text."""
    try:
        return base64.b64decode(file.data).decode()
    except ValueError:
        return ""


def steps(tx: Tx, words: Sequence[str], *, team: TeamId | None, limit: int) -> list[Found]:
    """Return turns of work that hold all words, among the newest ones. Prompts are left out: they
    repeat what is found elsewhere."""
    held, named = holds_all("u.said", words)
    rows = tx.all(
        "select t.team_id, t.id, t.label, t.agent_id, u.node_id, u.role, u.at, u.place,"
        # The whole turn, of the rows that are returned alone.
        " (select text from turns r where r.place = u.place),"
        " (select calls from turns r where r.place = u.place) from"
        f" (select place, node_id, role, at, substr(text || ' ' || coalesce(calls, ''), 1, {_TEXT})"
        " as said from turns where role in ('assistant', 'tool')"
        f" order by at desc limit {NEWEST_TURNS}) u"
        " join threads t on t.number = u.place / 4294967296"
        f" where t.kind = 'work' and {_IN_TEAM.format(column='t.team_id')} and {held}"
        " order by u.at desc limit :limit",
        team=team or "",
        limit=limit,
        **named,
    )
    found: list[Found] = []
    for team_id, thread_id, label, agent_id, node_id, role, at, place, said, calls in rows:
        title, text = _in_words(role, said, calls)
        step = Found(
            kind="step",
            team_id=team_id,
            ref=thread_id,
            title=title,
            text=text,
            at=from_micros(at),
            agent_id=agent_id,
            node_id=node_id,
            thread_id=thread_id,
            seq=place % 4294967296,
            label=to_label(label),
        )
        found.append(step)
    return found


def _in_words(role: str, said: str, calls: str | None) -> tuple[str, str]:
    """Return a turn as a title and a text: what was said and called, or the result of a call."""
    if role == "tool":
        return "Result of a call", said
    if calls is None:
        return "", said
    title, arguments = describe_calls(from_json(calls))
    return title, f"{said}\n{arguments}".strip()


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
