"""Planted: bugs that the entry plants in the server, to show that the attack finds them."""

import math
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from agiraph.app import Runtime
from agiraph.core.domain.ids import MessageId
from agiraph.core.services.triggers import due
from agiraph.core.store import events, nodes, teams
from agiraph.core.store.engine import dump
from agiraph.core.store.engine.sqlite import SqliteStore
from agiraph.core.store.tx import Tx
from agiraph.features.research.verbs import delivery
from agiraph.sandbox.inside import supervisor, supervisor_process
from tests.faults import mutants

WINDOW_SECONDS = 0.5
"""How long an acknowledged webhook call is not yet committed."""


def early_acknowledgement() -> None:
    """A webhook's caller gets the answer before the transaction is committed."""
    perform, commit = SqliteStore._perform, SqliteStore._commit

    def early(self: SqliteStore, job: Any) -> None:
        perform(self, job)
        if job.verb is due.receive_request and job.error is None:
            self._slow_until = math.inf  # so that the writer thread commits it
            job.future.set_result(job.result)
            job.future = self._loop.create_future()

    def late(self: SqliteStore) -> None:
        if any(job.verb is due.receive_request for job in self._group):
            time.sleep(WINDOW_SECONDS)
        commit(self)

    SqliteStore._perform = early  # type: ignore[method-assign]
    SqliteStore._commit = late  # type: ignore[method-assign]


def repeated_report() -> None:
    """Each start delivers the newest report of each team again."""
    start = Runtime.start

    def again(tx: Tx) -> None:
        for team in teams.page(tx):
            done = [n for n in nodes.board(tx, team.id) if n.asked_of and n.status.is_final]
            for node in done[-1:]:
                delivery.deliver(tx, node, "")

    async def repeat(self: Runtime, *arguments: Any) -> None:
        await self.store.write(again)
        await start(self, *arguments)

    Runtime.start = repeat  # type: ignore[method-assign]


def gap_in_events() -> None:
    """The first event after a start skips a number."""
    append = events.append
    begun: set[str] = set()

    def skipping(tx: Tx, team_id: Any, said: Any, *, end: int) -> Any:
        fresh = team_id not in begun and end & events._SEQ_MASK > 0
        begun.add(team_id)
        return append(tx, team_id, said, end=end + 1 if fresh else end)

    events.append = skipping  # type: ignore[assignment]


def torn_backup() -> None:
    """A backup lacks the newest message of a person."""
    rows = dump._rows

    def torn(tx: Tx, table: str, names: list[str], key: str) -> Any:
        newest = tx.one("select max(id) from messages where kind in ('message', 'nudge')")
        lost = MessageId("") if newest is None else newest[0]
        for row in rows(tx, table, names, key):
            if table != "messages" or row[names.index("id")] != lost:
                yield row

    dump._rows = torn


def orphaned_commands() -> None:
    """A command keeps running when its server is killed."""
    copied = Path(os.environ["AGIRAPH_HOME"]).parent / "supervisor"
    copied.mkdir(exist_ok=True)
    for each in Path(supervisor.__file__).parent.glob("*.py"):  # it imports from its own folder
        shutil.copy(each, copied)
    script = copied / "supervisor.py"
    for file, old, new in (
        (
            copied / "kernel.py",
            'check(libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "parent death signal")',
            "pass",
        ),
        (
            script,
            "    watch.end(",
            "    if ended == 'interrupted':\n        os._exit(0)\n    watch.end(",
        ),
    ):
        source = file.read_text()
        assert old in source, old
        file.write_text(source.replace(old, new))
    supervisor_process.script = lambda: str(script)


class Planted(NamedTuple):
    arm: Callable[[], None]
    parts: tuple[str, ...]
    """The parts of the attack that find it; the others would only take time."""
    says: str
    """A regular expression that the violation's message matches."""


ALL: dict[str, Planted] = {
    "early_acknowledgement": Planted(
        early_acknowledgement, ("triggers",), "webhook|acknowledged call|same delivery"
    ),
    "repeated_report": Planted(repeated_report, ("research",), "came to the inbox and the chat"),
    "gap_in_events": Planted(gap_in_events, ("chat",), "events of"),
    "torn_backup": Planted(torn_backup, ("chat", "backups"), "lacks messages"),
    "orphaned_commands": Planted(orphaned_commands, ("programs",), "processes outlive"),
    "silent_rerun": Planted(mutants.silent_rerun, ("chat",), "commands ran twice"),
    "unpaid_losses": Planted(mutants.unpaid_losses, ("chat",), "are booked"),
}
