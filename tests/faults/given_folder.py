"""Given folder: a sweep scenario in which a team reads a folder of a person, asks before a command
can send it, and commits what it changed there."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import ANSWER
from agiraph.core.services.lifecycle import answers, teams
from agiraph.core.store.tx import Tx
from agiraph.models.base import Request
from agiraph.testing import Says, call, says
from tests.faults.invariants import Ledger, database
from tests.faults.scenarios import answer_all, command, step, world_of

IDENTITY = ("-c", "user.name=p", "-c", "user.email=p@example.com")


def _react(home: Path, request: Request) -> Says:
    sends = f"{command(home, 'sent')} # http://sink.example/"
    calls = (
        call("read_file", path="folders/app/letter.txt"),
        call("bash", command=sends, network="open", wait=True),
        call("write_file", path="folders/app/draft.txt", content="the draft\n"),
        call("git_commit", folder="folders/app", message="Add the draft"),
        call("finish", summary="done"),
    )
    return says(calls[min(step(request), len(calls) - 1)])


def _git(app: Path, *arguments: str) -> str:
    made = subprocess.run(
        ["git", *IDENTITY, *arguments], cwd=app, capture_output=True, text=True, check=False
    )
    return f"{made.stdout}{made.stderr}".strip()


def _found(tx: Tx, app: Path) -> str:
    """Found the team with a folder whose words a person trusts, so that its thread stays clean."""
    folders = (GivenFolder(name="app", path=str(app), access="rw"),)
    given: dict[str, Any] = {
        "goal": "Do the work",
        "acceptance": (ANSWER,),
        "review": "never",
        "learns": False,
    }
    founded = teams.create(tx, owner_id=OWNER, model="scripted/ada", folders=folders, **given)
    team_id = founded.team.id
    answers.make_grant(tx, kind="trust", pattern="folder:app", person_id=OWNER, team_id=team_id)
    return team_id


async def given_folder(home: Path) -> None:
    app = home.parent / "app"
    if not app.exists():
        app.mkdir()
        (app / "letter.txt").write_text("dear friend\n")
        for made in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
            _git(app, *made)
    world = await world_of(home, partial(_react, home))
    if not await world.teams():
        team_id = await world.store.write(_found, app)
        Ledger(home).note("acknowledged", f"teams {team_id}")
    await world.settle()
    await answer_all(world)
    await world.settle()
    await world.stop()


def after_recovery(home: Path) -> Iterator[str]:
    """Check that the person was asked once and has one whole commit of what the team changed."""
    app = home.parent / "app"
    with closing(database(home)) as db:
        asked = [row[0] for row in db.execute("select way_out from messages where call <> ''")]
        if len(asked) != 1 or "private_send" not in (asked[0] or ""):
            yield f"the person was asked: {asked}"
        [said] = db.execute(
            "select text from journal where role = 'tool' and text like '%agiraph/%'"
            " and text like '%commit%'"
        ).fetchall() or [("nothing",)]
        if "Committed 1 file" not in said[0] and "holds it all" not in said[0]:
            yield f"the agent was told of the commit: {said[0]}"
        for [path] in db.execute("select path from folder_changes where path <> 'draft.txt'"):
            yield f"the team is said to have changed {path}"
    new = _git(app, "log", "--format=%s", "--branches=agiraph/*", "--not", "HEAD")
    if (new, _git(app, "log", "--format=%s")) != ("Add the draft", "first"):
        yield f"the branch of the team has the commits {new!r}"
    if damage := _git(app, "fsck", "--no-dangling"):
        yield f"the repository is damaged: {damage}"
    for left in (*app.glob(".git/**/*.lock"), *home.glob("teams/*/history/commit-*")):
        yield f"{left.name} is left"
