"""Commit tool: commits what a team has changed in a folder of a person."""

import asyncio
from typing import Annotated

from pydantic import Field

from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.records.folders import GivenFolder, name_for
from agiraph.core.domain.text.plurals import counted
from agiraph.core.run_context import RunContext
from agiraph.core.store.texts import folder_changes
from agiraph.core.tools.base import tool
from agiraph.core.tools.files.given_folders import seen_by
from agiraph.sandbox.folders import git_commits
from agiraph.sandbox.folders.git_commits import Author

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
    given = _named(ctx, folder)
    if not given.is_writable:
        raise Refused(f"folders/{given.name} can only be read here, so nothing can be committed.")
    repository = await asyncio.to_thread(git_commits.repository_in, given.path, given.name)
    changes = await ctx.store.read(folder_changes.not_undone, ctx.team.id)
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


def _named(ctx: RunContext, folder: str) -> GivenFolder:
    known = {given.name: given for given in seen_by(ctx)}
    place = ctx.scope.locate(folder).given
    if place is None or place.name not in known:
        names = ", ".join(f"folders/{name}" for name in known) or "none"
        raise NotFound("folder", folder, known=f"The folders of the human: {names}.")
    return known[place.name]
