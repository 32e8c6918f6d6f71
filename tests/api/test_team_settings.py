"""Team settings over HTTP: all settings, rules, export and deletion; specialists and skills."""

import io
import zipfile
from typing import Any

import pytest

from agiraph.testing import call, says
from tests.api.serving import Served

RULES = [
    {"tool": "bash", "action": "deny", "pattern": "rm *"},
    {"tool": "bash", "action": "allow", "pattern": "echo *"},
    {"tool": "*", "action": "ask", "pattern": "*"},
]


async def worked(served: Served) -> dict[str, Any]:
    """Return a team that has made four calls and waits for an answer."""
    served.world.script(
        "ada",
        says(call("bash", command="echo beans")),
        says(call("bash", command="echo beans; rm -r beans")),
        says(call("write_file", path="beans.md", content="42")),
        says(call("ask_human", question="Which beans?")),
    )
    _, team = await served.ask("POST", "/teams", {"goal": "Count the beans", "name": "Beans"})
    await served.world.settle()
    return team


async def limited(served: Served, scope: str) -> dict[str, str]:
    _, token = await served.ask("POST", "/tokens", {"name": scope, "scope": scope})
    return {"Authorization": f"Bearer {token['secret']}"}


@pytest.mark.slow
async def test_all_settings_are_returned_together_and_changed(served: Served) -> None:
    team = await worked(served)
    path = f"/teams/{team['id']}"
    _, found = await served.ask("GET", f"{path}/settings")
    budget = found.pop("budget")
    assert (found["model"], found["permissions"], found["is_default_soul"]) == (
        "scripted/ada",
        [],
        True,
    )
    assert [(use["name"], use["limit"]) for use in budget["limits"]] == [
        ("usd", None),
        ("tokens", None),
        ("turns", 500),
        ("seconds", 86400.0),
    ]
    assert (budget["limits"][2]["used"], budget["limits"][2]["left"]) == (4, 496)
    changes = {
        "permissions": RULES,
        "soul": "Be brief.",
        "muted_until": "9999-12-31T00:00:00Z",
        "budget": {"usd": 3.5, "turns": 2000},
    }
    status, changed = await served.ask("PATCH", path, changes)
    assert (status, changed["muted_until"]) == (200, "9999-12-31T00:00:00Z")
    _, found = await served.ask("GET", f"{path}/settings")
    assert (found["permissions"], found["soul"], found["is_default_soul"]) == (
        RULES,
        "Be brief.",
        False,
    )
    assert [use["limit"] for use in found["budget"]["limits"]] == [3.5, None, 2000, 86400.0]
    _, cost = await served.ask("GET", f"{path}/cost")
    assert cost["budget"] == found["budget"]
    _, changed = await served.ask("PATCH", path, {"muted_until": None})
    assert changed["muted_until"] is None


async def test_a_preview_tells_which_calls_of_the_team_each_rule_decides_on(served: Served) -> None:
    team = await worked(served)
    path = f"/teams/{team['id']}/permissions/preview"
    status, found = await served.ask("POST", path, {"rules": RULES})
    assert status == 200
    assert (found["calls"], [rule["count"] for rule in found["rules"]]) == (4, [0, 1, 3])
    assert [(one["tool"], one["argument"]) for one in found["rules"][1]["examples"]] == [
        ("bash", "echo beans")
    ]
    # A chained command is not allowed by a rule for its beginning.
    shown = [one["argument"] for one in found["rules"][2]["examples"]]
    assert shown == ["Which beans?", "beans.md", "echo beans; rm -r beans"]


@pytest.mark.slow
async def test_a_team_is_exported_as_a_zip_file(served: Served) -> None:
    team = await worked(served)
    url = f"{served.origin}/api/teams/{team['id']}/export"
    headers = {"Authorization": f"Bearer {served.api.access.token()}"}
    async with served.http.get(url, headers=headers) as response:
        assert response.headers["Content-Disposition"] == 'attachment; filename="beans.zip"'
        with zipfile.ZipFile(io.BytesIO(await response.read())) as archive:
            names = archive.namelist()
            said = archive.read("conversation.jsonl").decode()
    assert {"team.jsonl", "board.jsonl", "home/SOUL.md"} <= {*names}
    assert "Which beans?" in said


@pytest.mark.slow
async def test_a_team_is_deleted_for_good_after_its_name_is_given(served: Served) -> None:
    team = await worked(served)
    path = f"/teams/{team['id']}/delete"
    status, problem = await served.ask("POST", path, {"name": "beans"})
    assert (status, "is not that of the team" in problem["detail"]) == (422, True)
    status, problem = await served.ask("POST", path, {"name": "Beans"})
    assert (status, "Stop it first" in problem["detail"]) == (409, True)
    status, deleted = await served.ask("POST", path, {"name": "Beans", "stop": True})
    assert (status, deleted) == (202, {"team_id": team["id"], "name": "Beans"})
    assert (await served.ask("GET", f"/teams/{team['id']}"))[0] == 404
    assert (await served.ask("POST", path, {"name": "Beans"}))[0] == 404
    await served.world.runtime.removal.idle()
    assert (await served.ask("GET", "/teams"))[1] == []
    assert (await served.ask("GET", "/inbox"))[1]["items"] == []
    _, audit = await served.ask("GET", "/audit")
    gone = [entry["path"] for entry in audit if entry["status"] == 202]
    assert gone == [f"/api/teams/{team['id']} ('Beans', for good)"]


FOR_ADMINS = [
    ("PATCH", "/teams/Beans", {"permissions": []}),
    ("GET", "/teams/Beans/export", None),
    ("POST", "/teams/Beans/delete", {"name": "Beans"}),
    ("PUT", "/specialists/poet", {"text": "---\nname: poet\ndescription: x\n---\nWrite."}),
    ("DELETE", "/specialists/poet", None),
    ("PUT", "/skills/file", {"id": "skills/x", "text": "---\ndescription: x\n---\nWrite."}),
]


async def test_only_the_owners_token_may(served: Served) -> None:
    served.world.script("ada")
    await served.ask("POST", "/teams", {"goal": "Count", "name": "Beans", "start": False})
    headers = await limited(served, "operate")
    for method, path, body in FOR_ADMINS:
        status, problem = await served.ask(method, path, body, **headers)
        assert (status, "needs the scope 'admin'" in problem["detail"]) == (403, True), path


POET = "---\nname: poet\ndescription: Writes poems.\n---\nYou write short poems."


@pytest.mark.slow
async def test_a_specialist_is_written_tried_used_and_deleted(served: Served) -> None:
    team = await worked(served)
    _, listed = await served.ask("GET", "/specialists")
    assert {one["name"]: one["source"] for one in listed}["researcher"] == "built_in"
    status, problem = await served.ask("PUT", "/specialists/poet", {"text": "Write."})
    assert (status, "front matter" in problem["detail"]) == (422, True)
    status, problem = await served.ask("PUT", "/specialists/bard", {"text": POET})
    assert (status, "`name: poet`" in problem["detail"]) == (422, True)
    status, written = await served.ask("PUT", "/specialists/poet", {"text": POET})
    assert (status, written["specialist"]["source"], written["text"]) == (200, "home", POET)
    assert "poet" in served.world.runtime.specialists
    trial = {"team": team["id"], "task": "About the sea"}
    status, shown = await served.ask("POST", "/specialists/poet/try", trial)
    assert (status, "You write short poems." in shown["system"]) == (200, True)
    assert ("About the sea" in shown["task"], "write_file" in shown["tools"]) == (True, True)
    trial["text"] = POET.replace("short", "long")
    _, shown = await served.ask("POST", "/specialists/poet/try", trial)
    assert "You write long poems." in shown["system"]
    assert (await served.ask("DELETE", "/specialists/poet"))[0] == 204
    assert (await served.ask("GET", "/specialists/poet"))[0] == 404
    assert (await served.ask("DELETE", "/specialists/writer"))[0] == 422
    assert "poet" not in served.world.runtime.specialists


async def test_a_skill_is_written_and_is_off_until_it_is_enabled(served: Served) -> None:
    text = "---\nname: letters\ndescription: How letters are written.\n---\nBriefly."
    status, written = await served.ask(
        "PUT", "/skills/file", {"id": "skills/letters", "text": text}
    )
    assert (status, written["state"], written["name"]) == (200, "off", "letters")
    _, found = await served.ask("GET", "/skills/file?id=skills/letters")
    assert (found["text"], found["can_edit"]) == (text, True)
    assert found["shown"] == "- letters: How letters are written."
    wanted = {"id": "skills/letters", "sha256": written["sha256"]}
    assert (await served.ask("POST", "/skills/enable", wanted))[1]["state"] == "on"
    again = {"id": "skills/letters", "text": text + " And kindly."}
    assert (await served.ask("PUT", "/skills/file", again))[1]["state"] == "changed"
    for place in ("teams/x/y", "skills/../x", "/etc/x"):
        assert (await served.ask("PUT", "/skills/file", {"id": place, "text": text}))[0] == 422
