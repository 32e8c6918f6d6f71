"""Team export: all rows and files of a team as readable files, in a folder or as a ZIP file."""

import asyncio
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import Refused
from agiraph.core.store import teams as rows
from agiraph.core.store import threads, triggers
from agiraph.core.store.database import Store
from agiraph.features.backup import rows as team_rows
from agiraph.redaction import Redactor, redact

BATCH = 1000


def _write_lines(path: Path, things: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    redactor = Redactor()
    with path.open("ab") as file:
        for thing in things:
            file.write(redactor.feed(orjson.dumps(thing, default=str) + b"\n"))
        file.write(redactor.finish())


async def _write_rows(
    store: Store,
    path: Path,
    query: Callable[..., list[Any]],
    *args: Any,
    start: Any = None,
    cursor: Callable[[Any], Any] = lambda row: row,
    shown: Callable[[Any], Any] = lambda row: row,
) -> None:
    """Write the rows of a query as JSON lines, page by page: a long-lived team has many. The query
    takes the cursor of the last row as `after`."""
    after = start
    _write_lines(path, ())
    while page := await store.read(query, *args, after=after, limit=BATCH):
        # In a worker thread: a page may take long to encode.
        await asyncio.to_thread(_write_lines, path, map(shown, page))
        after = cursor(page[-1])


async def write_export(store: Store, home: Path, team: Team, target: Path) -> None:
    """Write all rows and files of the team into the target, which must be empty or missing.

    Files that cannot be read are left out; `left_out.jsonl` names them.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refused(f"{str(target)!r} is not an empty folder; name a new one.")
    target.mkdir(parents=True, exist_ok=True)
    _write_lines(target / "team.jsonl", [team])
    by_id = partial(_write_rows, store, start="", cursor=attrgetter("id"))
    by_seq = partial(_write_rows, store, start=0, cursor=attrgetter("seq"))
    for table in filter(team_rows.PAGED.__contains__, team_rows.FILES):
        shown: Callable[[Any], Any] = team_rows.named if table == "nodes" else _as_it_is
        await by_id(
            target / f"{team_rows.FILES[table]}.jsonl", team_rows.page, table, team.id, shown=shown
        )
    await _write_rows(store, target / "costs.jsonl", team_rows.spend_page, team.id)
    await _write_rows(store, target / "firings.jsonl", team_rows.firings_page, team.id)
    # Also of agents that have left.
    names: dict[str, str] = {
        agent.id: agent.name for agent in await store.read(rows.everyone, team.id)
    }
    said, conversation = partial(team_rows.said, names=names), target / "conversation.jsonl"
    await by_id(conversation, team_rows.page, "messages", team.id, shown=said)
    await by_seq(target / "events.jsonl", team_rows.events, team.id)
    after = ""
    while page := await store.read(team_rows.page, "threads", team.id, after=after, limit=BATCH):
        for thread in page:
            await by_seq(target / "threads" / f"{thread.id}.jsonl", threads.turns, thread.id)
        after = page[-1].id
    alarms = await store.read(triggers.of_team, team.id)
    redactor = Redactor()
    written = redactor.feed(orjson.dumps(alarms, option=orjson.OPT_INDENT_2)) + redactor.finish()
    (target / "triggers.json").write_bytes(written)
    left_out = await asyncio.to_thread(copy_files, home / "teams" / team.id, target / "home")
    if left_out:
        _write_lines(target / "left_out.jsonl", left_out)


def _as_it_is(row: object) -> object:
    return row


async def write_zip(store: Store, home: Path, team: Team) -> Path:
    """Write the export as a ZIP file into a new temporary folder; return its path. The caller
    removes the folder."""
    folder = Path(tempfile.mkdtemp(prefix="agiraph-export-"))
    try:
        await write_export(store, home, team, folder / "team")
        return await asyncio.to_thread(_zipped, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _zipped(folder: Path) -> Path:
    """Put the files of `folder/team` into a ZIP file and remove them. Links are left out: they may
    lead out of the team's folder, and a ZIP file has no common form for them."""
    target = folder / "team.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for path in sorted((folder / "team").rglob("*")):
            if path.is_file() and not path.is_symlink():
                archive.write(path, path.relative_to(folder / "team").as_posix())
    shutil.rmtree(folder / "team")
    return target


def copy_files(source: Path, target: Path) -> list[dict[str, str]]:
    """Copy a folder with its content; return the path and the error of what cannot be read.

    Links stay links: one may lead out of the folder. Known keys in files are overwritten. Names
    that contain a key are left out, and so are pipes and sockets.
    """
    left_out: list[dict[str, str]] = []

    def leave_out(error: OSError, path: Path) -> None:
        shown = os.fsencode(os.path.relpath(path, source)).decode(errors="replace")
        left_out.append({"path": shown, "error": error.strerror or str(error)})

    if not source.is_dir():
        return left_out
    # With the modes of new folders: those of the source may forbid writing to them.
    for at, folders, names in os.walk(source, onerror=lambda e: leave_out(e, Path(e.filename))):
        to = target / os.path.relpath(at, source)
        to.mkdir(parents=True, exist_ok=True)
        folders[:] = [name for name in folders if redact(name) == name]
        for name in (*folders, *(name for name in names if redact(name) == name)):
            try:
                _copy(Path(at) / name, to / name)
            except _Unreadable as error:
                leave_out(error, Path(at) / name)
    return left_out


class _Unreadable(OSError):
    """A file of the source that cannot be read. Errors of the target are raised as they are."""


def _copy(source: Path, target: Path) -> None:
    """Copy a link, or a file with its mode; leave out anything else."""
    try:
        mode = source.lstat().st_mode
        link = source.readlink() if stat.S_ISLNK(mode) else None
        file = _open(source) if stat.S_ISREG(mode) else None
    except OSError as error:
        raise _Unreadable(error.errno, error.strerror) from error
    if link is not None:
        target.symlink_to(link)
    if file is None:
        return
    with file, target.open("xb") as copy:
        for piece in Redactor().stream(file):
            copy.write(piece)
        os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o777)


def _open(path: Path) -> BinaryIO:
    """Open a file. A running command may put a link or a pipe in its place: neither is followed."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags), "rb")
