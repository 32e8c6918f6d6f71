"""Results over HTTP: what a team delivered, the files that texts name, and archives of them."""

import base64
import io
import zipfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, StopReason, WorkNode
from agiraph.core.home import zip_stream
from agiraph.core.home.safe_folder import Folder
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.features.backup import routes as archives
from agiraph.testing import ScriptedModel, call, says
from tests.api.serving import TOKEN, Served

REPORT = "# Prices\n\nApples cost 2 euros.\n"


@pytest.fixture
async def team(served: Served) -> dict[str, Any]:
    """A team whose goal ended with two published files."""
    served.world.script(
        "ada",
        says(
            call("write_file", path="report.md", content=REPORT),
            call("write_file", path="data/table.csv", content="fruit,price\napple,2\n"),
        ),
        says(call("finish", summary="Apples are cheaper: see report.md and data/table.csv.")),
    )
    _, team = await served.ask("POST", "/teams", {"goal": "Compare prices", "learns": False})
    await served.world.settle()
    return team


def folder(served: Served, team: dict[str, Any]) -> Path:
    return served.world.path / "teams" / team["id"]


async def test_a_delivered_result_is_listed_with_its_files(
    served: Served, team: dict[str, Any]
) -> None:
    status, page = await served.ask("GET", f"/teams/{team['id']}/results")
    assert (status, page["next"]) == (200, None)
    [result] = page["results"]
    published = f"nodes/{result['node_id']}/published"
    assert result["text"].startswith("Apples are cheaper: see")
    assert [file["path"] for file in result["files"]] == [
        f"{published}/report.md",
        f"{published}/data/table.csv",
    ]
    assert [file["size"] for file in result["files"]] == [len(REPORT), 20]
    told = {key: result[key] for key in ("kind", "title", "agent", "status", "file_count")}
    assert told == {
        "kind": "result",
        "title": "Compare prices",
        "agent": "coordinator",
        "status": "completed",
        "file_count": 2,
    }


def add_results(tx: Tx, founded: NewTeam) -> None:
    """Add five pieces of ended work, two of which ended at the same moment, and others that are no
    results: a failure, a review, a step of research, and a wake that found nothing to do."""

    def add(name: str, minute: int, **more: Any) -> None:
        node = WorkNode(
            id=NodeId(f"node_{name}"),
            team_id=founded.team.id,
            task=name,
            title=name,
            source="user",
            creator_id=OWNER,
            assignee_id=founded.coordinator.id,
            created_at=tx.now,
            ended_at=tx.now + timedelta(minutes=minute),
        )
        NODES.insert(tx, replace(node, status=NodeStatus.COMPLETED, result="Done."))
        if more:
            NODES.update(tx, node.id, **more)

    for name, minute in (("a", 1), ("b", 2), ("c", 2), ("d", 3), ("e", 4)):
        add(name, minute)
    add("part", 5, parent_id=NodeId("node_a"))
    add("failed", 6, status=NodeStatus.FAILED)
    add("review", 7, is_step=True)
    add("reader", 8, is_step=True)
    add("idle", 9, stop_reason=StopReason.NOTHING_TO_DO)


async def test_results_are_listed_page_by_page_newest_first(served: Served) -> None:
    served.world.script("ada")
    founded = await served.world.found("One", start=False)
    await served.world.store.write(add_results, founded)
    address = f"/teams/{founded.team.id}/results"

    seen: list[str] = []
    before: str | None = ""
    while before is not None:
        _, page = await served.ask("GET", f"{address}?limit=2&parts=false&before={before}")
        seen += [result["title"] for result in page["results"]]
        before = page["next"]
    _, whole = await served.ask("GET", address)

    assert seen == ["e", "d", "c", "b", "a"]
    assert [(one["title"], one["parent_title"]) for one in whole["results"]][:2] == [
        ("part", "a"),
        ("e", None),
    ]
    for wrong in ("x", "12-result-", "99999999999999999999-result-n", "-1-result-n"):
        assert (await served.ask("GET", f"{address}?before={wrong}"))[0] == 422, wrong


async def test_a_path_is_found_as_agents_name_it(served: Served, team: dict[str, Any]) -> None:
    _, page = await served.ask("GET", f"/teams/{team['id']}/results")
    published = f"nodes/{page['results'][0]['node_id']}/published"
    inside = folder(served, team)
    (inside / "leads-out").symlink_to(served.world.path)
    named = {
        "report.md": f"{published}/report.md",
        "./report.md": f"{published}/report.md",
        "scratch/report.md": f"{published}/report.md",
        "published/data/table.csv": f"{published}/data/table.csv",
        "report.md:2": f"{published}/report.md",
        "data/": f"{published}/data",
        "GOAL.md": "GOAL.md",
        "memory//./index.md": "memory/index.md",
        f"{inside}/GOAL.md": "GOAL.md",
    }
    hostile = [
        *("../../token", "/etc/passwd", "leads-out/token", "leads-out", "history", "nothing.md"),
        ".//history",
        *("..", ".", "", "\0", "a\0b", "x" * 400, "\u202egpj.exe", "report.md/x", "//", "C:\\x"),
    ]
    query = [("text", text) for text in (*named, *hostile)]
    address = f"{served.origin}/api/teams/{team['id']}/paths"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with served.http.get(address, params=query, headers=headers) as response:
        assert response.status == 200
        found = {one["text"]: one["path"] for one in await response.json()}
    assert found == named


async def archive(served: Served, team: dict[str, Any], query: str) -> dict[str, bytes]:
    """Return the files of an archive by name."""
    address = f"{served.origin}/api/teams/{team['id']}/archive?{query}"
    async with served.http.get(address, headers={"Authorization": f"Bearer {TOKEN}"}) as response:
        assert (response.status, response.content_type) == (200, "application/zip")
        assert response.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''")
        packed = zipfile.ZipFile(io.BytesIO(await response.read()))
    assert packed.testzip() is None
    return {name: packed.read(name) for name in packed.namelist()}


async def test_all_results_are_downloaded_as_one_archive(
    served: Served, team: dict[str, Any]
) -> None:
    found = await archive(served, team, "results=true")
    [top] = {name.split("/")[0] for name in found}
    assert top.startswith("Compare prices (")
    assert found[f"{top}/report.md"].decode() == REPORT
    assert found.keys() - {f"{top}/_manifest.json"} == {f"{top}/report.md", f"{top}/data/table.csv"}


async def test_an_archive_of_the_uploads_holds_the_files_of_messages(served: Served) -> None:
    served.world.script("ada")
    team = (await served.ask("POST", "/teams", {"goal": "Count", "start": False}))[1]
    files = [
        {"name": name, "media_type": "text/csv", "data": base64.b64encode(data).decode()}
        for name, data in (("beans.csv", b"x,62"), ("beans.csv", b"y,63"))
    ]
    said = {"message": "See these.", "mode": "nudge", "attachments": files}
    await served.ask("POST", f"/agents/{team['coordinator_id']}/send", said)
    sent = {"attached/beans.csv": b"x,62", "attached/beans (2).csv": b"y,63"}
    assert await archive(served, team, "path=user_uploads") == sent
    served.world.runtime.home.team(team["id"]).folder.write("user_uploads/offer.md", b"Jars")
    found = await archive(served, team, "path=user_uploads")
    assert found == {"offer.md": b"Jars"} | sent
    whole = await archive(served, team, "path=")
    assert {name for name in whole if name.startswith("user_uploads/")} == {
        f"user_uploads/{name}" for name in found
    }


@pytest.mark.slow
async def test_an_archive_of_the_uploads_holds_all_files_of_messages_or_is_refused(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.world.script("ada")
    team = (await served.ask("POST", "/teams", {"goal": "Count", "start": False}))[1]
    count = 501

    def send(tx: Tx) -> None:
        about: dict[str, Any] = {"team_id": team["id"], "sender": OWNER, "recipient": OWNER}
        for number in range(count):
            data = base64.b64encode(f"{number}".encode()).decode()
            file = Attachment(name=f"{number}.txt", media_type="text/plain", data=data)
            bus.send(tx, Draft(**about, text=f"See {number}.", attachments=(file,)))

    await served.world.store.write(send)
    found = await archive(served, team, "path=user_uploads")
    assert found == {f"attached/{number}.txt": f"{number}".encode() for number in range(count)}
    monkeypatch.setattr(archives, "MOST_FILES", count - 1)
    status, problem = await served.ask("GET", f"/teams/{team['id']}/archive?path=user_uploads")
    assert (status, "has more than 500 files" in problem["detail"]) == (422, True)


async def test_an_archive_holds_no_links_and_no_names_that_deceive(
    served: Served, team: dict[str, Any]
) -> None:
    shelf = folder(served, team) / "shelf"
    shelf.mkdir()
    (served.world.path / "secret").write_text("secret")
    (shelf / "link").symlink_to(served.world.path / "secret")
    (shelf / "folder").symlink_to(served.world.path)
    names = ["..\\up.txt", "a\u202egpj.exe", "new\nline", "A.txt", "a.txt", "C:x", "dots...", "…"]
    for name in names:
        (shelf / name).write_text(name)

    found = await archive(served, team, "path=shelf")

    assert sorted(found) == sorted(
        [".._up.txt", "a_gpj.exe", "new_line", "A.txt", "a (2).txt", "C_x", "dots", "…"]
    )
    assert found["a (2).txt"] == b"a.txt"
    for path in ("../..", "/etc", "shelf/folder", "shelf/link", "nothing"):
        status, _ = await served.ask("GET", f"/teams/{team['id']}/archive?path={path}")
        assert status in (403, 404, 422), path


async def test_an_archive_that_would_be_too_large_is_refused_with_what_to_do(
    served: Served, team: dict[str, Any]
) -> None:
    with (folder(served, team) / "huge").open("wb") as file:
        file.truncate(2**30 + 1)
    status, problem = await served.ask("GET", f"/teams/{team['id']}/archive")
    assert status == 422
    assert "Download a smaller folder" in problem["detail"]


async def test_results_that_are_too_large_together_are_refused(
    served: Served, team: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = served.world._models["ada"]
    assert isinstance(model, ScriptedModel)
    model.lines += [
        says(call("write_file", path="more.md", content=REPORT)),
        says(call("finish", summary="See more.md.")),
    ]
    await served.ask("POST", f"/teams/{team['id']}/goal", {"goal": "Compare more"})
    await served.world.settle()
    published = (folder(served, team) / "nodes").glob("*/published")
    sizes = [sum(f.stat().st_size for f in one.rglob("*") if f.is_file()) for one in published]
    monkeypatch.setattr(zip_stream, "MOST_BYTES", max(sizes))
    status, problem = await served.ask("GET", f"/teams/{team['id']}/archive?results=true")
    assert (status, "too much for one archive" in problem["detail"]) == (422, True)
    monkeypatch.setattr(zip_stream, "MOST_BYTES", sum(sizes))
    assert len(await archive(served, team, "results=true")) >= len(sizes) * 2


def test_an_archive_of_files_that_grow_meanwhile_breaks_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_bytes(b"short")
    files = zip_stream.members(Folder.open(tmp_path), "")
    (tmp_path / "log").write_bytes(b"longer than it was")
    monkeypatch.setattr(zip_stream, "MOST_BYTES", 5)
    with pytest.raises(Refused, match="has grown"):
        list(zip_stream.stream(Folder.open(tmp_path), files))
