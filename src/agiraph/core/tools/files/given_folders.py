"""Given folders: keeps track of what tools and commands change in the folders of a person."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import field, replace
from datetime import timedelta
from typing import Annotated

from pydantic import Field

from agiraph.core.domain.agents import GivenFolder, name_for
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.provenance.labels import CLEAN, Label, join, of_folder
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import dataclass
from agiraph.core.home.file_lock import to_the_end
from agiraph.core.home.scopes import Area
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import folder_changes
from agiraph.core.store.texts import file_labels
from agiraph.core.store.texts import folder_changes as rows
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import tool
from agiraph.sandbox.folders import git_commits, git_guard
from agiraph.sandbox.folders.folder_history import Change, FolderHistory
from agiraph.sandbox.folders.git_commits import Author
from agiraph.sandbox.folders.git_guard import Guard
from agiraph.sandbox.folders.given_folders import check_links

KEPT_FOR = timedelta(days=30)
"""How long the copies of changed files are kept."""
MOST_LABELS = 500
"""Files that get a label of their own; if a command changed more, the whole folder gets it."""
SWITCHED_OFF = (
    "(Git repositories that were made in a folder of the human are switched off: {paths}. Their "
    "HEAD or .git has another name now, since git would run their hooks and settings as the human. "
    "Keep your own repositories in scratch/; the human may rename it back.)"
)
NO_COMMIT = (
    "(Commands can only read what git runs in a folder of the human: .git, and hooks and settings "
    "elsewhere. To commit what you changed there, call git_commit.)"
)
UNSEARCHABLE = (
    "folders/{name} cannot be searched for git repositories, so no command may change it: {error}. "
    "The human can give it to read only."
)
ONLY_READ = "(Commands can only read folders/{name}: {why}. Write to it with your file tools.)"


def seen_by(ctx: RunContext) -> tuple[GivenFolder, ...]:
    """Return the folders that commands of this thread see. In a strict team, a thread that holds
    untrusted text from outside of a folder cannot change it, unless a person has allowed the
    command."""
    if not ctx.scope.sees_team:
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

    guards: dict[str, Guard] = field(default_factory=dict[str, Guard])
    """What of each folder the command may not change, by the folder's name."""
    switched_off: list[str] = field(default_factory=list[str])
    """Git repositories that the command made."""
    label: Label = CLEAN
    """Of what the command read from the network."""

    def remark(self, output: str = "") -> str:
        """Return what the model must know; empty if nothing. `output` is a failed command's."""
        said: list[str] = []
        if "Read-only file system" in output or "Permission denied" in output:
            whole = ((name, guard.why) for name, guard in self.guards.items() if guard.is_whole)
            said += [ONLY_READ.format(name=name, why=why) for name, why in whole]
            if any(guard.frozen for guard in self.guards.values()) and not said:
                said.append(NO_COMMIT)
        if self.switched_off:
            said.append(SWITCHED_OFF.format(paths=", ".join(self.switched_off[:10])))
        return "\n".join(said)


@asynccontextmanager
async def watched(ctx: RunContext) -> AsyncGenerator[Watched]:
    """Record what a command changes in given folders, however it ends.

    Raise `Refused` before the command if a folder is too large to keep copies of, or if a link has
    taken its place: the command would see what the link leads to.
    """
    check_links(seen_by(ctx))
    watched = Watched()
    async with AsyncExitStack() as folders:
        for given in seen_by(ctx):
            if given.is_writable:
                await folders.enter_async_context(_watched_in(ctx, given, watched))
        yield watched


@asynccontextmanager
async def _watched_in(
    ctx: RunContext, given: GivenFolder, watched: Watched
) -> AsyncGenerator[None]:
    """Record what a command changes in one folder, and keep it off what git runs."""
    history = history_of(ctx, given)
    with ExitStack() as running:
        await to_the_end(_begin, given, history, watched, running)
        if label := label_outside(ctx, given):
            # If the runtime dies before `_settle`, everything in the folder keeps the label.
            await ctx.store.write(_label_whole, ctx, given, label)
        try:
            yield
        finally:
            guard = watched.guards[given.name]
            made = await asyncio.to_thread(git_guard.switch_off, guard)
            watched.switched_off += _named(given, made)
            await _settle(ctx, given, history, watched.label)
            await to_the_end(running.close)


def _begin(
    given: GivenFolder, history: FolderHistory, watched: Watched, running: ExitStack
) -> None:
    """Look at a folder before a command, and count the command as running until `running` ends."""
    history.scan()
    try:
        watched.switched_off += _named(given, history.switch_off_left())
        found = git_guard.find(given.path)
    except OSError as error:
        raise Refused(UNSEARCHABLE.format(name=given.name, error=error)) from error
    guard = running.enter_context(git_guard.running(found))
    running.enter_context(history.command(guard))
    watched.guards[given.name] = guard


def _named(given: GivenFolder, paths: list[str]) -> list[str]:
    """Return absolute paths as the model knows them."""
    return [f"folders/{given.name}{path[len(given.path) :]}" for path in paths]


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
            await _settle(ctx, given, history_of(ctx, given), CLEAN)


async def _settle(
    ctx: RunContext, given: GivenFolder, history: FolderHistory, from_network: Label
) -> None:
    changes = await asyncio.to_thread(history.scan)
    label = label_outside(ctx, given, from_network)
    await ctx.store.write(_record, ctx, given, changes, history.left_out, label)
    if changes:
        used = await ctx.store.read(rows.copies_since, ctx.team.id, ctx.clock.now() - KEPT_FOR)
        await asyncio.to_thread(history.remove_copies, used=used)


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


BRANCHES = "agiraph"
"""The first part of the names of all branches that are made in a person's repository."""
COMMITTED = (
    "Committed {files} as {commit} on the branch {branch} of folders/{name}. The branch that the "
    "human works on is as it was."
)
NOTHING_NEW = "Nothing to commit: the branch {branch} of folders/{name} holds it all, as {commit}."


@tool(effect="repeatable", always_granted=True)
async def git_commit(
    ctx: RunContext,
    folder: Annotated[str, Field(description="Such as folders/app")],
    message: Annotated[str, Field(min_length=1, max_length=10_000)],
) -> Answer:
    """Commit all that your team has changed in a folder of the human, on a branch of the team. No
    hook runs. Commands see .git read-only.
    """
    given = _seen(ctx, folder)
    if not given.is_writable:
        raise Refused(f"folders/{given.name} can only be read here, so nothing can be committed.")
    repository = await asyncio.to_thread(git_commits.repository_in, given.path, given.name)
    changes = await ctx.store.read(rows.not_undone, ctx.team.id)
    # A commit of the person while a command ran counts as its change, too.
    changed = {one.path for one in changes if one.folder == given.name}
    paths = sorted(path for path in changed if ".git" not in path.split("/"))
    if not paths:
        raise Refused(f"Nobody on the team has changed a file in folders/{given.name}.")
    made = await git_commits.commit(
        ctx.home,
        ctx.command_rules,
        repository,
        paths,
        team_id=ctx.team.id,
        spool=ctx.home.spool(f"{ctx.lease.thread_id}-{ctx.current_call_id}"),
        new=git_commits.NewCommit(
            branch=f"{BRANCHES}/{name_for(ctx.team.name, frozenset())}",
            message=message,
            author=Author(
                name=ctx.agent.name, email=f"{name_for(ctx.agent.name, frozenset())}@agiraph"
            ),
        ),
    )
    words = COMMITTED if made.files else NOTHING_NEW
    files = counted(made.files, "file")
    return Done(
        words.format(files=files, commit=made.commit[:12], branch=made.branch, name=given.name)
    )


def _seen(ctx: RunContext, folder: str) -> GivenFolder:
    known = {given.name: given for given in seen_by(ctx)}
    place = ctx.scope.locate(folder).given
    if place is None or place.name not in known:
        names = ", ".join(f"folders/{name}" for name in known) or "none"
        raise NotFound("folder", folder, known=f"The folders of the human: {names}.")
    return known[place.name]
