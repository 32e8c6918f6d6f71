"""Backups: `agiraph backup` while the server works, and `agiraph restore` of each elsewhere.

A backup that reports success restores, holds every message acknowledged before it began, and its
rows and files agree. A backup that was killed leaves a whole file or none.
"""

import asyncio
import shutil
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from agiraph.core.domain.ids import AgentId, TeamId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import NodeStatus
from agiraph.core.home.layout import Home
from agiraph.core.store import events, messages, nodes, teams
from agiraph.core.store.database import Store
from agiraph.core.store.engine.connect import open_store
from tests.faults.attack.chat import Chat
from tests.faults.attack.context import Context, require
from tests.faults.attack.host import Host

SECONDS = 120.0


@dataclass(slots=True, kw_only=True)
class Backups:
    context: Context
    host: Host
    chats: list[Chat]
    name: str = "backups"
    counts: Counter[str] = field(default_factory=Counter[str])

    @property
    def folder(self) -> Path:
        return self.host.home.parent

    async def set_up(self) -> None:
        return

    async def act(self) -> None:
        self.counts["backups"] += 1
        file = self.folder / f"backup-{self.counts['backups']}.tar.gz"
        acknowledged = {chat.agent: list(chat.acknowledged) for chat in self.chats}
        if not await self._back_up(file):
            return
        home = self.folder / file.name.removesuffix(".tar.gz")
        code = await self._run("restore", str(file), home=home)
        require(code == 0, "restoring", file.name, "ended with", code, self._log())
        await self._check(home, acknowledged)
        self.counts["restored"] += 1
        shutil.rmtree(home)
        file.unlink()
        await asyncio.sleep(self.context.chance.uniform(0.5, 3.0))

    async def _back_up(self, file: Path) -> bool:
        """Make a backup; every fifth is killed. Return whether there is one to restore."""
        is_killed = self.counts["backups"] % 5 == 0
        seconds = self.context.chance.uniform(0.1, 1.0) if is_killed else None
        code = await self._run("backup", str(file), kill_after=seconds)
        self.counts["killed backups"] += code == -signal.SIGKILL
        require(code in (0, -signal.SIGKILL), "a backup ended with", code, self._log())
        require(code != 0 or file.exists(), "a backup reported success and is not there")
        for partial in self.folder.glob(f".{file.name}.*"):  # of one that was killed
            partial.unlink()
        return file.exists()

    async def _run(
        self, *arguments: str, home: Path | None = None, kill_after: float | None = None
    ) -> int:
        """Run a command to its end, or kill it; return its exit code."""
        async with self.host.run(*arguments, home=home) as running:
            try:
                async with asyncio.timeout(SECONDS if kill_after is None else kill_after):
                    await running.output.read()
                    return await running.process.wait()
            except TimeoutError:
                require(kill_after is not None, *arguments, "hangs", self._log())
            running.process.send_signal(signal.SIGKILL)
            return await running.process.wait()

    def _log(self) -> str:
        return self.host.log.read_text()[-2000:]

    async def _check(self, home: Path, acknowledged: dict[str, list[str]]) -> None:
        check_database(home / "agiraph.db")
        store = await open_store(f"sqlite:///{home / 'agiraph.db'}", SystemClock())
        try:
            await self._check_rows(store, acknowledged)
            await _check_files(store, Home.open(home))
        finally:
            await store.close()

    async def _check_rows(self, store: Store, acknowledged: dict[str, list[str]]) -> None:
        for team in await store.read(teams.page, limit=500):
            told = await store.read(events.after, team.id, 0, limit=1_000_000)
            dense = [event.seq for event in told] == list(range(1, len(told) + 1))
            require(dense, "a backup has gaps in the events of", team.name)
        for chat in self.chats:
            team, agent = TeamId(chat.team), AgentId(chat.agent)
            said = [m.text for m in await store.read(messages.conversation, team, agent, OWNER)]
            kept = [text for text in said if text in set(acknowledged[chat.agent])]
            lost = [text for text in acknowledged[chat.agent] if text not in kept]
            require(not lost, "a backup lacks messages that were acknowledged before it:", lost)
            require(kept == acknowledged[chat.agent], "a backup has messages out of order or twice")

    async def quick_check(self) -> None:
        return

    async def check(self) -> Counter[str]:
        return Counter(self.counts)


async def _check_files(store: Store, home: Home) -> None:
    """Check that the published files of completed nodes exist, with the hashes of their rows."""
    for team in await store.read(teams.page, limit=500):
        for node in await store.read(nodes.board, team.id, limit=100_000):
            if node.status is not NodeStatus.COMPLETED or not node.manifest:
                continue
            folder = home.team(team.id).node(node.id)
            require(folder.verify() == [], "a backup has damaged files of", node.id)
            same = folder.manifest().files == node.manifest
            require(same, "rows and files of a backup differ on", node.id)


def check_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        [(said,)] = connection.execute("pragma integrity_check").fetchall()
        require(said == "ok", "integrity_check of", path.name, "says", said)
        wrong = connection.execute("pragma foreign_key_check").fetchall()
        require(not wrong, "foreign_key_check of", path.name, "says", wrong)
