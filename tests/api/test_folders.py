"""Folders over HTTP: a team works on a person's project; its changes are listed and undone."""

import sys
from pathlib import Path
from typing import Any

import pytest

from agiraph.api.routes.files import _open, plain_path
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.persons import OWNER
from agiraph.core.services import access
from agiraph.core.store import teams
from agiraph.testing import call, says
from tests.api.serving import Served
from tests.home.test_escapes import SECRET, hostile_paths

FIXED = "def double(number):\n    return 2 * number\n"
BROKEN = "def double(number):\n    return number\n"
TEST = """import unittest
from double import double

class Doubles(unittest.TestCase):
    def test_two(self):
        self.assertEqual(double(2), 4)
"""


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elsewhere") / "project"
    folder.mkdir()
    (folder / "double.py").write_text(BROKEN)
    (folder / "test_double.py").write_text(TEST)
    return folder


async def work(served: Served, project: Path, **more: Any) -> dict[str, Any]:
    """Let a team mend the project and run its tests; return the team."""
    tests = f"cd {project} && {sys.executable} -B -m unittest -q 2>&1"
    served.world.script(
        "ada",
        says(call("bash", command=tests)),
        says(call("write_file", path="folders/project/double.py", content=FIXED)),
        says(call("bash", command=f"{tests} && echo fine > notes.txt")),
        says(call("finish", summary="The tests pass.")),
    )
    body = {"goal": "Mend it", "folders": [f"{project}:rw"], "interval": 0, **more}
    status, team = await served.ask("POST", "/teams", body)
    assert status == 201, team
    await served.world.settle()
    return team


@pytest.mark.slow
async def test_a_team_mends_a_project_and_its_changes_are_listed_and_undone(
    served: Served, project: Path
) -> None:
    team = await work(served, project, acceptance=["answer"], review="never")
    assert team["folders"] == [{"name": "project", "path": str(project), "access": "rw"}]
    [goal, *_] = await served.world.board(team["id"])
    answers = [turn.text for turn in await served.world.turns(goal.id) if turn.role == "tool"]
    assert "FAILED (failures=1)" in answers[0]
    assert answers[1] == "Wrote folders/project/double.py (42 bytes)."
    assert "[exit code 0]" in answers[2]

    path = f"/teams/{team['id']}"
    _, listed = await served.ask("GET", f"{path}/changes")
    seen = [(one["path"], one["kind"], one["node_id"], one["is_kept"]) for one in listed]
    assert seen == [
        ("project/notes.txt", "made", goal.id, True),
        ("project/double.py", "changed", goal.id, True),
    ]
    _, held = await served.ask("GET", f"{path}/changes/{listed[1]['id']}/before")
    assert held == BROKEN

    (project / "notes.txt").write_text("mine")
    status, undone = await served.ask("POST", f"{path}/undo", {"node": goal.id})
    assert (status, undone) == (
        200,
        {"restored": ["project/double.py"], "changed_since": ["project/notes.txt"], "not_kept": []},
    )
    assert (project / "double.py").read_text() == BROKEN
    assert (project / "notes.txt").read_text() == "mine"
    _, undone = await served.ask("POST", f"{path}/undo", {"force": True})
    assert undone["restored"] == ["project/notes.txt"]
    assert not (project / "notes.txt").exists()
    _, listed = await served.ask("GET", f"{path}/changes")
    assert [(one["path"], one["node_id"]) for one in listed[:1]] == [("project/notes.txt", None)]
    assert all(one["undone_at"] for one in listed if one["node_id"])


async def test_the_files_of_a_given_folder_are_read_and_no_path_leads_out_of_it(
    served: Served, project: Path
) -> None:
    outside = project.parent / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "secret").write_bytes(SECRET)
    (outside / "deep" / "secret").write_bytes(SECRET)
    (project / "a" / "b").mkdir(parents=True)
    links = {"link": "../outside", "file": "../outside/secret", "absolute": str(outside)}
    for name, target in (links | {"top": "/", "up": "..", "loop": "loop"}).items():
        (project / name).symlink_to(target)
    served.world.script("ada")
    given = {"goal": "Mend it", "start": False, "folders": [str(project)]}
    _, team = await served.ask("POST", "/teams", given)
    path = f"/teams/{team['id']}/files"

    _, top = await served.ask("GET", path)
    assert [entry["kind"] for entry in top["entries"] if entry["path"] == "folders"] == ["folder"]
    _, folders = await served.ask("GET", f"{path}/folders")
    assert [entry["path"] for entry in folders["entries"]] == ["folders/project"]
    _, inner = await served.ask("GET", f"{path}/folders/project")
    assert "folders/project/double.py" in [entry["path"] for entry in inner["entries"]]
    assert await served.ask("GET", f"{path}/folders/project/double.py") == (200, BROKEN)
    assert (await served.ask("GET", f"{path}/folders/elsewhere"))[0] == 404
    changed = {"text": "mine", "expected": "none"}
    assert (await served.ask("PUT", f"{path}/folders/project/new.md", changed))[0] == 422

    found = await served.world.store.read(teams.find, team["id"])
    for hostile in hostile_paths(project):
        try:
            answer = _open(served.api, found, plain_path(f"folders/project/{hostile}"), 0)
        except (Refused, ValueError):
            continue
        assert SECRET not in bytes(answer.body), hostile
        assert b"root:" not in bytes(answer.body), hostile


async def test_only_the_owner_gives_folders_and_an_unfit_one_is_refused(
    served: Served, project: Path
) -> None:
    served.world.script("ada")
    given = {"goal": "Mend it", "start": False, "folders": [str(project)]}
    issued = await served.world.store.write(
        access.issue, OWNER, kind="token", name="w", scope="operate", life=None
    )
    header = {"Authorization": f"Bearer {issued.secret}"}
    status, refusal = await served.ask("POST", "/teams", given, **header)
    assert status == 403
    assert "To give a team a folder of this machine needs the scope 'admin'" in refusal["detail"]
    home = str(served.world.path)
    status, refusal = await served.ask("POST", "/teams", given | {"folders": [home]})
    assert (status, "holds agiraph's own files" in refusal["detail"]) == (422, True)

    _, team = await served.ask("POST", "/teams", given)
    assert team["folders"] == [{"name": "project", "path": str(project), "access": "ro"}]
    status, _ = await served.ask("PATCH", f"/teams/{team['id']}", {"folders": []}, **header)
    assert status == 403
    _, team = await served.ask("PATCH", f"/teams/{team['id']}", {"folders": []})
    assert team["folders"] == []
    status, _ = await served.ask("POST", f"/teams/{team['id']}/undo", {}, **header)
    assert status == 403
