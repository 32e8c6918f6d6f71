"""Earlier: turns a database back into one of an earlier release, for the tests of migrations."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from agiraph.core.store.engine import postgres
from agiraph.core.store.tx import Tx
from agiraph.testing import World

T = TypeVar("T")
ADDED: dict[int, tuple[str, ...]] = {
    26: ("messages.ends_waits",),
    27: ("nodes.given_up", "nodes.line_kinds"),
    28: ("messages.summary", "threads.pruned_at"),
    29: ("persons.zone",),
    30: ("grants.is_typed",),
    31: ("file_labels.unverified_lines",),
    32: ("messages.acts", "messages.heard_by"),
    35: ("messages.closed_at",),
    37: ("nodes.kind", "nodes.is_step"),
    38: ("timers.kind", "timers.subject"),
    39: ("triggers.ended_with", "deliveries.revoked", "nodes.address"),
    40: ("messages.topic", "messages.fingerprint", "triggers.missed"),
    44: ("messages.doubts",),
    45: ("nodes.canceller_id", "nodes.cancel_asked_at"),
    46: ("messages.edits", "messages.edited_by"),
    48: ("passes.link_id",),
    49: ("spend.outermost_id",),
}
"""The columns that each migration adds."""
OTHERWISE: dict[int, tuple[str, ...]] = {
    25: ("drop table attached_files",),
    28: ("drop index threads_to_prune",),
    37: (
        "alter table nodes add column research text",
        "alter table nodes add column is_public integer not null default 0",
    ),
    38: ("drop index timers_of",),
    40: (
        "drop index messages_of_call",
        "create table waits_before (waiting_on text not null, node_id text not null references"
        " nodes (id), thread_id text not null, call_id text not null, reason text not null,"
        " created_at bigint not null, primary key (waiting_on, thread_id, call_id))",
        "insert into waits_before select case kind when 'day' then 'time' || ':' || kind else kind"
        " end || ':' || subject, node_id, thread_id, call_id, reason, created_at from waits",
        "drop table waits",
        "alter table waits_before rename to waits",
        "create index waits_of_node on waits (node_id)",
    ),
    41: ("drop index nodes_open",),
    42: ("drop index knowledge_changes_of_team",),
    43: (
        "drop index nodes_goals",
        "drop index spend_of_team",
        "create index spend_of_team on spend (team_id)",
    ),
    44: ("update nodes set doubts = nullif(doubts, '[]')",),
    46: ("drop index messages_edits",),
    48: ("drop table shares", "drop index passes_of_link"),
    49: (
        "drop index spend_outermost",
        "drop index spend_of_team",
        "create index spend_of_team on spend (team_id, agent_id, purpose, model)",
    ),
}
"""What undoes the rest of a migration, before its columns are dropped."""


def to_schema(tx: Tx, version: int) -> None:
    """Make the database one of this schema."""
    for later in sorted({*ADDED, *OTHERWISE}, reverse=True):
        if later <= version:
            break
        for sql in OTHERWISE.get(later, ()):
            tx.run(sql)
        for column in ADDED.get(later, ()):
            tx.run("alter table {} drop column {}".format(*column.split(".")))
    match tx.dialect:
        case "sqlite":
            tx.run(f"pragma user_version = {version}")
        case "postgres":
            tx.run(f"delete from schema_version where version > {version}")


async def upgrade(world: World, database_url: str, prepare: Callable[[Tx], T]) -> T:
    """Prepare the rows and the schema of an earlier release, and open the database again."""
    prepared = await world.store.write(prepare)
    await world.stop()
    if database_url.startswith("postgresql"):
        await asyncio.to_thread(postgres.upgrade, database_url)
    await world.start()
    return prepared
