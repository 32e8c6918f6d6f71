"""Given folders: keeps track of what tools and commands change in the folders of a person."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.folders import GivenFolder
from agiraph.domain.labels import CLEAN, Label, join, of_folder
from agiraph.home import git_guard
from agiraph.home.folder_history import Change, FolderHistory
from agiraph.home.given_folders import check_links
from agiraph.home.scopes import Area
from agiraph.run_context import RunContext
from agiraph.services.board import folder_changes
from agiraph.store import file_labels
from agiraph.store import folder_changes as rows
from agiraph.store.tx import Tx

KEPT_FOR = timedelta(days=30)
"""How long the copies of changed files are kept."""
MOST_LABELS = 500
"""Files that get a label of their own; if a command changed more, the whole folder gets it."""
PUT_BACK = (
    "(Put back: {paths}. Hooks of git, and settings of git that run programs, belong to the human.)"
)


def seen_by(ctx: RunContext) -> tuple[GivenFolder, ...]:
    """Return the folders that commands of this thread see. In a strict team, a thread that holds
    untrusted text from outside of a folder cannot change it, unless a person has allowed the
    command."""
    if ctx.scope.is_public:
        return ()
    if ctx.team.trust != "strict" or ctx.is_confirmed:
        return ctx.scope.given
    return tuple(
        replace(one, access="ro") if label_outside(ctx, one) else one for one in ctx.scope.given
    )


def label_of(ctx: RunContext) -> Label:
    """Return the label of what a command can read in given folders, without those that a person
    trusts."""
    return join(of_folder(one.name) for one in seen_by(ctx)).without(ctx.trusted)


def label_outside(ctx: RunContext, given: GivenFolder, more: Label = CLEAN) -> Label:
    """Return the label of this thread without the folder itself: what comes from a folder and goes
    back into it is labelled by its place."""
    return (ctx.label | more).without(of_folder(given.name).sources)


def history_of(ctx: RunContext, given: GivenFolder) -> FolderHistory:
    return FolderHistory(ctx.home.path / "teams" / ctx.team.id, given)


@dataclass(slots=True)
class Watched:
    """What a command did in given folders."""

    put_back: list[str] = field(default_factory=list[str])
    label: Label = CLEAN
    """Of what the command read from the network."""

    @property
    def remark(self) -> str:
        """Return what the model must know; empty if nothing."""
        return PUT_BACK.format(paths=", ".join(self.put_back[:10])) if self.put_back else ""


@asynccontextmanager
async def watched(ctx: RunContext) -> AsyncGenerator[Watched]:
    """Record what a command changes in given folders, however it ends.

    Raise `Refused` before the command if a folder is too large to keep copies of, or if a link has
    taken its place: the command would see what the link leads to.
    """
    check_links(seen_by(ctx))
    histories = [(one, history_of(ctx, one)) for one in seen_by(ctx) if one.is_writable]
    for given, history in histories:
        await asyncio.to_thread(history.scan)
        if label := label_outside(ctx, given):
            # If the runtime dies before `_settle`, everything in the folder keeps the label.
            await ctx.store.write(_label_whole, ctx, given, label)
    watched = Watched()
    try:
        yield watched
    finally:
        for given, history in histories:
            await _settle(ctx, given, history, watched)


async def catch_up(ctx: RunContext) -> None:
    """Record the changes of a command that a crash of the runtime cut off.

    A folder that a link has replaced is left out: the command has run, and its result counts.
    """
    for given in seen_by(ctx):
        try:
            check_links([given])
        except Refused:
            continue
        if given.is_writable:
            await _settle(ctx, given, history_of(ctx, given), Watched())


async def _settle(
    ctx: RunContext, given: GivenFolder, history: FolderHistory, watched: Watched
) -> None:
    changes = await asyncio.to_thread(history.scan)
    harmful = await asyncio.to_thread(_put_back, history, changes)
    if harmful:
        await asyncio.to_thread(history.scan)
        watched.put_back += [f"folders/{given.name}/{path}" for path in sorted(harmful)]
        changes = [change for change in changes if change.path not in harmful]
    label = label_outside(ctx, given, watched.label)
    await ctx.store.write(_record, ctx, given, changes, history.left_out, label)
    if changes:
        used = await ctx.store.read(rows.copies_since, ctx.team.id, ctx.clock.now() - KEPT_FOR)
        await asyncio.to_thread(history.remove_copies, used=used)


def _put_back(history: FolderHistory, changes: list[Change]) -> set[str]:
    """Undo the changes to hooks and settings of git that run programs; return their paths."""
    harmful: set[str] = set()
    for path, before, after in changes:
        if not git_guard.is_guarded(path) or after is None:
            continue
        with suppress(NotFound):
            old = b"" if before is None else history.content(before)
            if after.startswith("file") and not git_guard.is_harmful(
                path, old, history.content(after)
            ):
                continue
        with suppress(NotFound):
            history.restore(path, before)
            harmful.add(path)
    return harmful


def _label_whole(tx: Tx, ctx: RunContext, given: GivenFolder, label: Label) -> None:
    path = f"folders/{given.name}"
    known = file_labels.find(tx, ctx.team.id, path)
    label = label if known is None else label | known.label
    file_labels.put_hash(tx, ctx.team.id, path, "", label=label, thread_id=ctx.lease.thread_id)


def _record(
    tx: Tx,
    ctx: RunContext,
    given: GivenFolder,
    changes: list[Change],
    left_out: list[str],
    label: Label,
) -> None:
    folder_changes.record(tx, ctx.team.id, ctx.node.id, given.name, changes)
    root = f"folders/{given.name}"
    if not label:
        return
    if len(changes) > MOST_LABELS:
        _label_whole(tx, ctx, given, label)
        return
    written = {path: after for path, _, after in changes if after is not None}
    for path, version in (written | dict.fromkeys(left_out, "")).items():
        sha = version.rpartition(" ")[2]
        full = f"{root}/{path}"
        known = file_labels.find(tx, ctx.team.id, full)
        joined = label if known is None else label | known.label
        file_labels.put_hash(
            tx, ctx.team.id, full, sha, label=joined, thread_id=ctx.lease.thread_id
        )
    whole = file_labels.find(tx, ctx.team.id, root)
    if whole is not None and whole.thread_id == ctx.lease.thread_id:
        file_labels.remove(tx, ctx.team.id, root)


async def keep(ctx: RunContext, path: str, after: bytes) -> None:
    """Copy a file of a given folder that a tool is about to write, and record the change."""
    spot = ctx.scope.locate(path)
    if spot.area is not Area.GIVEN_TO_CHANGE or spot.given is None:
        return
    history, below = history_of(ctx, spot.given), "/".join(spot.rest)
    before = await asyncio.to_thread(history.copy, below)
    mode = before.split(" ")[1] if before is not None and before.startswith("file") else "644"
    version = f"file {mode} {file_labels.digest(after)}"
    await ctx.store.write(
        folder_changes.record,
        ctx.team.id,
        ctx.node.id,
        spot.given.name,
        [(below, before, version)],
    )
