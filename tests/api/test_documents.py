"""Documents over HTTP: a person changes texts of a team, and uploads files; nothing is lost."""

import hashlib
import io
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.provenance.labels import UNKNOWN, Label
from agiraph.core.services.board import labels
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.texts import file_labels
from agiraph.testing import call, says
from tests.api.serving import TOKEN, Served


@pytest.fixture
async def team(served: Served) -> dict[str, Any]:
    served.world.script("ada")
    founded = await served.world.found("Compare prices", start=False)
    served.world.runtime.home.team(founded.team.id).prepare(founded.team)
    _, team = await served.ask("GET", f"/teams/{founded.team.id}")
    return team


def folder(served: Served, team: dict[str, Any]) -> Path:
    return served.world.path / "teams" / team["id"]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def versions(served: Served, team: dict[str, Any], path: str) -> list[tuple[str, str]]:
    """Return author and text of each version of a file, newest first."""
    at = f"/teams/{team['id']}/versions"
    _, found = await served.ask("GET", f"{at}?path={path}")
    texts = [(await served.ask("GET", f"{at}/{one['id']}?path={path}"))[1] for one in found]
    return [(one["author"], text) for one, text in zip(found, texts, strict=True)]


async def test_a_text_is_saved_and_what_it_held_before_is_kept(
    served: Served, team: dict[str, Any]
) -> None:
    at, path = f"/teams/{team['id']}/files", "memory/knowledge/prices.md"
    body = {"text": "Apples: 2\n", "expected": "none"}
    status, first = await served.ask("PUT", f"{at}/{path}", body)
    assert (status, first["hash"]) == (200, digest("Apples: 2\n"))
    (folder(served, team) / path).write_text("Apples: 3\n")  # as an agent or a program may
    body = {"text": "Apples: 4\n", "expected": digest("Apples: 3\n")}
    assert (await served.ask("PUT", f"{at}/{path}", body))[0] == 200

    assert await served.ask("GET", f"{at}/{path}") == (200, "Apples: 4\n")
    assert await versions(served, team, path) == [
        ("human", "Apples: 4\n"),
        ("", "Apples: 3\n"),
        ("human", "Apples: 2\n"),
    ]


async def test_a_text_that_was_changed_meanwhile_is_not_overwritten(
    served: Served, team: dict[str, Any]
) -> None:
    at = f"/teams/{team['id']}/files/PLAN.md"
    (folder(served, team) / "PLAN.md").write_text("The agent's plan")
    for stale in ("none", digest("an older plan"), ""):
        status, problem = await served.ask("PUT", at, {"text": "Mine", "expected": stale})
        assert (status, "changed meanwhile" in problem["detail"]) == (409, True)
    assert await served.ask("GET", at) == (200, "The agent's plan")
    address = f"{served.origin}/api{at}"
    async with served.http.get(address, headers={"Authorization": f"Bearer {TOKEN}"}) as response:
        tag = response.headers["ETag"]
    assert (await served.ask("PUT", at, {"text": "Mine", "expected": tag}))[0] == 200


async def test_soul_and_goal_are_changed_together_with_their_rows(
    served: Served, team: dict[str, Any]
) -> None:
    at = f"/teams/{team['id']}/files"
    soul, goal = "# Soul\n\nBe brief.\n", "# Goal\n\nCompare pears.\n"
    for path, text in (("SOUL.md", soul), ("GOAL.md", goal)):
        _, before = await served.ask("GET", f"{at}/{path}")
        status, _ = await served.ask(
            "PUT", f"{at}/{path}", {"text": text, "expected": digest(before)}
        )
        assert status == 200
        assert await served.ask("GET", f"{at}/{path}") == (200, text)
    _, now = await served.ask("GET", f"/teams/{team['id']}")
    assert now["goal"] == "Compare pears."
    status, problem = await served.ask(
        "PUT", f"{at}/GOAL.md", {"text": "# Goal\n\n", "expected": digest(goal)}
    )
    assert (status, "A team needs a goal" in problem["detail"]) == (422, True)
    for path, text in (("SOUL.md", soul), ("GOAL.md", goal)):
        long = {"text": f"{text}{'x' * 100_000}", "expected": digest(text)}
        status, problem = await served.ask("PUT", f"{at}/{path}", long)
        assert (status, "longer than 100,000 characters" in problem["detail"]) == (422, True)
        assert await served.ask("GET", f"{at}/{path}") == (200, text)


async def test_a_soul_that_is_changed_in_the_settings_has_each_version_with_its_author(
    served: Served, team: dict[str, Any]
) -> None:
    _, first = await served.ask("GET", f"/teams/{team['id']}/files/SOUL.md")
    for soul in ("Be brief.", "Be kind."):
        assert (await served.ask("PATCH", f"/teams/{team['id']}", {"soul": soul}))[0] == 200
    assert await versions(served, team, "SOUL.md") == [
        ("human", "# Soul\n\nBe kind.\n"),
        ("human", "# Soul\n\nBe brief.\n"),
        ("agiraph", first),
    ]


@pytest.mark.parametrize(
    "path",
    [
        *("nodes/x/published/report.md", "memory/index.md", "memory/archive/a.md", "other.md"),
        *("history/versions/x", "memory/unverified/a.md", "agents/ada/results/x.md", "token"),
        *("../token", "memory/../../../token", "memory/a.txt"),
    ],
)
async def test_records_of_the_work_are_not_changed(
    served: Served, team: dict[str, Any], path: str
) -> None:
    at = f"/teams/{team['id']}/files/{path.replace('..', '%2e%2e')}"
    status, _ = await served.ask("PUT", at, {"text": "x", "expected": "none"})
    assert status in (403, 404, 405, 422)
    assert not (folder(served, team) / "memory" / "a.txt").exists()


async def test_texts_that_are_too_long_for_prompts_are_refused(
    served: Served, team: dict[str, Any]
) -> None:
    at = f"/teams/{team['id']}/files"
    body = {"text": "x" * 70_000, "expected": "none"}
    status, problem = await served.ask("PUT", f"{at}/memory/knowledge/long.md", body)
    assert (status, "64 KiB at most" in problem["detail"]) == (422, True)


async def test_a_correction_does_not_confirm_the_words_of_strangers(
    served: Served, team: dict[str, Any]
) -> None:
    path, team_id = "memory/knowledge/page.md", team["id"]
    (folder(served, team) / path).write_text("From a page")
    label = Label(("page:example.org",))

    def spoil(tx: Any) -> None:
        file_labels.put(tx, team_id, path, b"From a page", label=label)

    await served.world.store.write(spoil)
    body = {"text": "From a page, corrected", "expected": digest("From a page")}
    assert (await served.ask("PUT", f"/teams/{team_id}/files/{path}", body))[0] == 200
    known = await served.world.store.read(file_labels.find, team_id, path)
    assert known is not None
    assert (known.label, known.hash) == (label, digest("From a page, corrected"))


async def test_a_version_comes_back_byte_for_byte_and_with_its_label(
    served: Served, team: dict[str, Any]
) -> None:
    at, path = f"/teams/{team['id']}", "user_uploads/prices.csv"
    old = b"\xef\xbb\xbfCaf\xe9,2\r\n"  # a mark at the start, and a byte that is not UTF-8
    await served.ask("POST", f"{at}/uploads", upload("prices.csv", old))
    await served.ask("POST", f"{at}/uploads", upload("prices.csv", b"a", if_exists="replace"))
    await served.world.store.write(file_labels.remove, team["id"], path)
    _, found = await served.ask("GET", f"{at}/versions?path={path}")
    restore = f"{at}/versions/{found[-1]['id']}/restore"

    status, problem = await served.ask("POST", restore, {"path": path, "expected": "none"})
    assert (status, "changed meanwhile" in problem["detail"]) == (409, True)
    status, saved = await served.ask("POST", restore, {"path": path, "expected": digest("a")})
    assert (status, saved["size"]) == (200, len(old))
    assert (folder(served, team) / path).read_bytes() == old
    label = await served.world.store.read(labels.of_path, team["id"], path)
    assert label == UNKNOWN
    status, _ = await served.ask("POST", restore, {"path": "token", "expected": "none"})
    assert status == 422


async def test_a_path_in_another_spelling_keeps_label_and_versions(
    served: Served, team: dict[str, Any]
) -> None:
    name, team_id = "memory/knowledge/page.md", team["id"]
    label = Label(("page:example.org",))
    (folder(served, team) / name).write_text("From a page")
    await served.world.store.write(file_labels.put, team_id, name, b"From a page", label=label)
    odd = "memory//knowledge/./page.md"
    body = {"text": "Corrected", "expected": digest("From a page")}
    at = f"/teams/{team_id}/files/{odd.replace('/./', '/%2e/')}"
    _, saved = await served.ask("PUT", at, body)
    assert saved["path"] == name
    known = await served.world.store.read(file_labels.find, team_id, name)
    assert known is not None
    assert (known.label, known.hash) == (label, digest("Corrected"))
    _, found = await served.ask("GET", f"/teams/{team_id}/versions?path={odd}")
    assert [one["is_labelled"] for one in found] == [True, True]
    version = f"versions/{found[1]['id']}?path={odd}"
    for path, sources in ((f"files/{odd}", label.sources), (version, UNKNOWN.sources)):
        address = f"{served.origin}/api/teams/{team_id}/{path}"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with served.http.get(address, headers=headers) as response:
            assert json.loads(response.headers["Agiraph-Sources"]) == list(sources), path


async def test_what_an_agent_writes_is_a_version_too(served: Served) -> None:
    served.world.script(
        "ada",
        says(call("write_file", path="PLAN.md", content="First plan\n")),
        says(call("write_file", path="PLAN.md", content="Second plan\n")),
        says(call("finish", summary="Planned.")),
    )
    goal = {"goal": "Plan", "learns": False}
    _, team = await served.ask("POST", "/teams", goal)
    await served.world.settle()
    assert await versions(served, team, "PLAN.md") == [
        ("coordinator", "Second plan\n"),
        ("coordinator", "First plan\n"),
    ]


def upload(name: str, data: bytes, **more: str) -> dict[str, str]:
    return {"name": name, "data": b64encode(data).decode(), **more}


async def test_an_upload_never_overwrites_a_file_silently(
    served: Served, team: dict[str, Any]
) -> None:
    at = f"/teams/{team['id']}/uploads"
    status, first = await served.ask("POST", at, upload("Prices.csv", b"a"))
    assert (status, first["path"]) == (201, "user_uploads/Prices.csv")
    status, problem = await served.ask("POST", at, upload("prices.csv", b"b"))
    assert status == 409
    assert problem["detail"] == ("There is a file 'Prices.csv' already. Replace it, or keep both.")
    for data in ("?", "ä"):
        status, problem = await served.ask("POST", at, {"name": "a", "data": data})
        assert (status, "'a' is not base64" in problem["detail"]) == (422, True)
    _, both = await served.ask("POST", at, upload("prices.csv", b"b", if_exists="keep_both"))
    assert both["path"] == "user_uploads/prices (2).csv"
    await served.ask("POST", at, upload("prices.csv", b"c", if_exists="replace"))
    stored = folder(served, team) / "user_uploads"
    assert {p.name: p.read_bytes() for p in stored.iterdir()} == {
        "Prices.csv": b"c",
        "prices (2).csv": b"b",
    }
    assert await versions(served, team, "user_uploads/Prices.csv") == [
        ("human", "c"),
        ("human", "a"),
    ]


@pytest.mark.slow
async def test_hostile_uploads_stay_harmless(served: Served, team: dict[str, Any]) -> None:
    """Names that lead out or deceive are replaced; an archive is stored and never unpacked."""
    at = f"/teams/{team['id']}/uploads"
    names = {
        "../../token": ".._.._token",
        "a\u202egpj.exe": "a_gpj.exe",
        "<img src=x onerror=alert(1)>.md": "_img src=x onerror=alert(1)_.md",
        "..": "_",
        "\0": "_",
        "C:\\x": "C__x",
        "bomb.zip": "bomb.zip",
    }
    for name, kept in names.items():
        status, saved = await served.ask("POST", at, upload(name, b"PK\x03\x04"))
        assert (status, saved["path"]) == (201, f"user_uploads/{kept}"), name
        (folder(served, team) / saved["path"]).unlink()
    body = io.BytesIO(json.dumps(upload("big.bin", bytes(10 * 2**20 + 1))).encode())
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    address = f"{served.origin}/api{at}"
    async with served.http.post(address, data=body, headers=headers) as response:
        assert response.status == 422
        assert (
            "has 10.1 MiB; a file may have 10 MiB at most"
            in (await response.json(content_type=None))["detail"]
        )
    assert (await served.ask("POST", at, {"name": "x", "data": "?"}))[0] == 422


async def test_an_upload_leaves_the_plan_for_an_earlier_goal_to_the_next_work(
    served: Served, team: dict[str, Any]
) -> None:
    (folder(served, team) / "PLAN.md").write_text("Ask for prices.")
    _, before = await served.ask("GET", f"/teams/{team['id']}/files/GOAL.md")
    await served.world.store.write(TEAMS.update, team["id"], goal="Count herons")
    assert (await served.ask("POST", f"/teams/{team['id']}/uploads", upload("a", b"a")))[0] == 201
    assert await served.ask("GET", f"/teams/{team['id']}/files/GOAL.md") == (200, before)
    body = {"text": "Compare pears", "expected": digest(before)}
    status, problem = await served.ask("PUT", f"/teams/{team['id']}/files/GOAL.md", body)
    assert (status, "has a new goal" in problem["detail"]) == (409, True)


async def test_agents_read_uploads_with_the_label_of_a_file(served: Served) -> None:
    ada = served.world.script(
        "ada",
        says(call("read_file", path="user_uploads/prices.csv")),
        says(call("finish", summary="Apples cost 2.")),
    )
    goal = {"goal": "Read the prices", "start": False, "learns": False}
    _, team = await served.ask("POST", "/teams", goal)
    await served.ask("POST", f"/teams/{team['id']}/uploads", upload("prices.csv", b"apple,2"))
    await served.ask("POST", f"/teams/{team['id']}/goal", {"goal": "Read the prices"})
    await served.world.settle()
    assert "apple,2" in str(ada.requests[-1])
    _, page = await served.ask("GET", f"/teams/{team['id']}/results")
    assert page["results"][0]["sources"] == ["file:prices.csv"]
