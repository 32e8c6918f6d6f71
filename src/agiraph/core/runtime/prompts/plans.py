"""Plans: when a team has a new goal, keeps the old text of GOAL.md and puts the old plan away."""

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.persons import OWNER
from agiraph.core.home import file_lock, file_versions
from agiraph.core.home.layout import PLAN, Home, TeamFolder, goal_text
from agiraph.core.store.database import Store
from agiraph.core.store.texts import file_labels
from agiraph.core.store.texts.file_labels import FileLabel
from agiraph.core.store.tx import Tx

MOST_BYTES = 1 << 20


async def prepare(store: Store, home: Home, team: Team) -> None:
    """Write the files of a team. A team with a new goal begins with an empty plan."""
    folder = home.team(team.id)
    if _old_plan(folder, team):
        async with file_lock.hold(home, team.id):
            await _renew(store, folder, team)
    # A few small files: starting a thread would take longer than writing them.
    before, now = _read(folder, "GOAL.md"), goal_text(team)
    if before and before != now:
        _keep_goal(folder, before)
    folder.prepare(team)
    if before and before != now:
        _keep_goal(folder, now)


def _keep_goal(folder: TeamFolder, text: bytes) -> None:
    """Keep a version of GOAL.md. Only people give goals."""
    file_versions.keep(folder.folder, "GOAL.md", text, author=OWNER, is_labelled=False)


async def _renew(store: Store, folder: TeamFolder, team: Team) -> None:
    """Move PLAN.md to memory/archive/ if GOAL.md still holds another goal than the team has.

    GOAL.md is updated afterwards. A crash in between only repeats this: the name in the
    archive depends on the text alone. The label of the plan goes with it before it is moved. The
    caller holds the file lock, so that no thread writes a plan in between.
    """
    plan = _old_plan(folder, team)
    if not plan:
        return  # another process has moved it while this one waited for the lock
    kept = f"memory/archive/plan-{file_labels.digest(plan)[:12]}.md"
    labelled = await store.write(_copy_label, team.id, kept)
    with folder.folder.sub("memory/archive", create=True) as archive:
        archive.write(kept.rpartition("/")[2], plan)
    empty = PLAN.encode()
    folder.folder.write("PLAN.md", empty)
    if labelled is not None:
        # After the file, as a clean thread does it; a label that was set since then stays.
        await store.write(file_labels.clear, labelled, empty)


def _old_plan(folder: TeamFolder, team: Team) -> bytes:
    """Return the plan for an earlier goal; empty if PLAN.md holds none."""
    goal, plan = _read(folder, "GOAL.md"), _read(folder, "PLAN.md")
    is_old = goal and goal != goal_text(team) and plan.strip() != PLAN.strip().encode()
    return plan if is_old else b""


def _copy_label(tx: Tx, team_id: TeamId, kept: str) -> FileLabel | None:
    file_labels.copy(tx, team_id, {"PLAN.md": kept})
    return file_labels.find(tx, team_id, "PLAN.md")


def _read(folder: TeamFolder, path: str) -> bytes:
    try:
        return folder.folder.read(path, limit=MOST_BYTES)
    except Refused:
        return b""
