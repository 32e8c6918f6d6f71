"""Team rows: everything the database holds of one team, table by table, and how an export
shows it."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agiraph.core.domain.events import Event
from agiraph.core.domain.features import brought
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.triggers import Firing
from agiraph.core.domain.work import WorkNode
from agiraph.core.store import events as event_rows
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.rows import Table
from agiraph.core.store.spend import SPEND, Spend
from agiraph.core.store.stages import STAGES
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.texts.file_labels import FILE_LABELS
from agiraph.core.store.threads import THREADS
from agiraph.core.store.triggers import FIRINGS
from agiraph.core.store.tx import Tx

PAGED: dict[str, Table[Any]] = {
    "agents": AGENTS,
    "nodes": NODES,
    "stages": STAGES,
    "threads": THREADS,
    "messages": MESSAGES,
    "file_labels": FILE_LABELS,
    **{table.name: table for tables in brought("tables") for table in tables if table.key == "id"},
}
"""Tables with one row for each id. Agents that have left are rows like any other."""

FILES = {
    "agents": "agents",
    "nodes": "board",
    "stages": "stages",
    "threads": "threads",
    "memories": "memories",
    "insights": "insights",
    "notes": "notes",
    "file_labels": "file_labels",
    "knowledge_changes": "knowledge_changes",
}
"""The file for each table that there is. Messages have one of their own, with names for ids."""

_SPEND_KEY = ("node_id", "agent_id", "purpose", "model", "day")
_FIRING_KEY = ("trigger_id", "slot")


def page(tx: Tx, table: str, team_id: TeamId, *, after: str = "", limit: int) -> list[Any]:
    """Return the rows of one table in `PAGED`, by id, that come after this id."""
    where = "team_id = :team_id and id > :after order by id limit :limit"
    return PAGED[table].select(tx, where, team_id=team_id, after=after, limit=limit)


def spend_page(tx: Tx, team_id: TeamId, *, after: Spend | None, limit: int) -> list[Spend]:
    """Return the next costs of a team by node, agent, purpose, model and day."""
    where, last = _behind(_SPEND_KEY, after)
    where = f"team_id = :team_id{where} order by {', '.join(_SPEND_KEY)} limit :limit"
    return SPEND.select(tx, where, team_id=team_id, limit=limit, **last)


def firings_page(tx: Tx, team_id: TeamId, *, after: Firing | None, limit: int) -> list[Firing]:
    """Return the next firings of a team's triggers, by trigger and slot."""
    where, last = _behind(_FIRING_KEY, after)
    of_team = "trigger_id in (select id from triggers where team_id = :team_id)"
    where = f"{of_team}{where} order by {', '.join(_FIRING_KEY)} limit :limit"
    return FIRINGS.select(tx, where, team_id=team_id, limit=limit, **last)


def _behind(key: tuple[str, ...], after: object | None) -> tuple[str, dict[str, Any]]:
    """Return a condition for rows behind this one, and its values; nothing for the first page."""
    if after is None:
        return "", {}
    names = ", ".join(f":{name}" for name in key)
    return f" and ({', '.join(key)}) > ({names})", {name: getattr(after, name) for name in key}


def named(node: WorkNode) -> dict[str, Any]:
    """Return the columns of a node: of its kind the name, not the facts that stand in the code."""
    return {field.name: getattr(node, field.name) for field in fields(node)} | {
        "kind": node.kind.name
    }


def events(tx: Tx, team_id: TeamId, *, after: int, limit: int) -> list[Event]:
    """Return the next events of a team."""
    return event_rows.after(tx, team_id, after, limit=limit)


def said(m: Message, *, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a message as people read it, with names for ids."""
    return {
        "at": m.created_at,
        "from": names.get(m.sender, m.sender),
        "to": names.get(m.recipient, m.recipient),
        "kind": m.kind,
        "title": m.title,
        "text": m.full_text,
        "attachments": m.attachments,
        "in_reply_to": m.in_reply_to,
        "id": m.id,
    }
