"""Extensions over HTTP: every client sees how they stand, the owner alone enables them."""

from pathlib import Path

from agiraph import call
from agiraph.features.extensions import commands
from tests.api.serving import Served
from tests.extensions.files import put, put_skill
from tests.extensions.test_consent import greeting
from tests.tools.tool_calls import ToolAnswer, run_calls


async def test_the_owner_enables_a_tool_with_the_hash_that_was_listed(served: Served) -> None:
    put(served.world.path, "tools/hi.py", greeting(), enabled=False)
    status, [listed] = await served.ask("GET", "/extensions")
    assert (status, listed["id"], listed["state"]) == (200, "tools/hi.py", "off")

    wrong = {"id": "tools/hi.py", "sha256": "0" * 64}
    status, problem = await served.ask("POST", "/extensions/enable", wrong)
    assert (status, problem["detail"]) == (
        409,
        "tools/hi.py has changed since you looked at it; look again.",
    )

    right = {"id": "tools/hi.py", "sha256": listed["sha256"]}
    status, enabled = await served.ask("POST", "/extensions/enable", right)
    assert (status, enabled["state"], enabled["summary"]) == (200, "on", "greet (nothing)")
    assert enabled["offers"] == [
        {"name": "greet", "touches": "nothing", "effect": "repeatable", "secrets": []}
    ]
    _, told = await run_calls(served.world, call("greet", name="Bob"))
    assert told == [ToolAnswer("Hello Bob")]

    status, _ = await served.ask("POST", "/extensions/disable", {"id": "tools/hi.py"})
    assert status == 200
    _, [listed] = await served.ask("GET", "/extensions")
    assert listed["state"] == "off"
    status, problem = await served.ask("POST", "/extensions/disable", {"id": "tools/hi.py"})
    assert (status, problem["detail"]) == (
        422,
        "'tools/hi.py' is not enabled; nothing was changed.",
    )


async def test_the_owner_adds_a_file_that_is_off_until_it_is_enabled(served: Served) -> None:
    body = {"id": "tools/hi.py", "text": greeting()}
    status, shown = await served.ask("POST", "/extensions/files", body)
    assert (status, [one["now"] for one in shown["files"]]) == (201, [greeting()])
    said = " ".join(str(commands.enable_tool.help).split())
    assert shown["consent"] in said
    assert (await served.ask("POST", "/extensions/files", body))[0] == 409
    [listed] = (await served.ask("GET", "/extensions"))[1]
    assert (listed["state"], listed["sha256"]) == ("off", shown["sha256"])
    right = {"id": "tools/hi.py", "sha256": shown["sha256"]}
    assert (await served.ask("POST", "/extensions/enable", right))[1]["state"] == "on"
    for wrong in ("hi.py", "tools/../hi.py", "tools/_hi.py", "skills/hi.py", "tools/hi.txt"):
        status, _ = await served.ask("POST", "/extensions/files", body | {"id": wrong})
        assert (wrong, status) == (wrong, 422)
    put_skill(served.world.path, "skills/pdf")
    _, skill = await served.ask("GET", "/skills/content?id=skills/pdf")
    assert skill["consent"] in " ".join(str(commands.enable_skill.help).split())


async def test_nobody_but_the_owner_in_this_site_adds_a_file(served: Served) -> None:
    body = {"id": "tools/hi.py", "text": greeting()}
    _, made = await served.ask("POST", "/tokens", {"name": "o", "scope": "operate"})
    token = {"Authorization": f"Bearer {made['secret']}"}
    assert (await served.ask("POST", "/extensions/files", body, **token))[0] == 403
    evil = {"Origin": "https://evil.example"}
    assert (await served.ask("POST", "/extensions/files", body, **evil))[0] == 403
    assert not (served.world.path / "tools").exists()


async def test_a_skill_is_enabled_with_the_hash_that_was_listed(served: Served) -> None:
    put_skill(served.world.path, "skills/pdf", about="How PDFs are made.")
    status, [listed] = await served.ask("GET", "/skills")
    assert (status, listed["id"], listed["state"]) == (200, "skills/pdf", "off")
    body = {"id": "skills/pdf", "sha256": listed["sha256"]}
    assert (await served.ask("POST", "/skills/enable", {**body, "sha256": "1" * 64}))[0] == 409
    status, enabled = await served.ask("POST", "/skills/enable", body)
    assert (status, enabled["state"], enabled["summary"]) == (200, "on", "How PDFs are made.")
    assert (await served.ask("POST", "/skills/disable", {"id": "skills/pdf"}))[0] == 200


async def test_a_token_that_only_reads_gets_no_file_outside_of_the_home(
    served: Served, tmp_path: Path
) -> None:
    put_skill(tmp_path, "private/.claude/skills/pdf", about="How PDFs are made.")
    put_skill(served.world.path, "skills/pdf", about="How PDFs are made.")
    _, made = await served.ask("POST", "/tokens", {"name": "reader", "scope": "read"})
    token = {"Authorization": f"Bearer {made['secret']}"}
    outside = f"/skills/file?id={tmp_path}/private/.claude/skills/pdf"
    assert (await served.ask("GET", outside, **token))[0] == 403
    assert (await served.ask("GET", "/skills/file?id=~/.claude/skills/pdf", **token))[0] == 403
    assert (await served.ask("GET", "/skills/file?id=skills/pdf", **token))[0] == 200
    assert (await served.ask("GET", outside))[0] == 200


async def test_a_token_that_is_not_the_owners_enables_nothing(served: Served) -> None:
    sha256 = put(served.world.path, "tools/hi.py", greeting(), enabled=False)
    put_skill(served.world.path, "skills/pdf")
    for scope in ("read", "talk", "operate"):
        _, made = await served.ask("POST", "/tokens", {"name": scope, "scope": scope})
        token = {"Authorization": f"Bearer {made['secret']}"}
        for path in ("/extensions", "/skills"):
            for verb in ("enable", "disable"):
                body = {"id": "tools/hi.py"} | ({"sha256": sha256} if verb == "enable" else {})
                status, _ = await served.ask("POST", f"{path}/{verb}", body, **token)
                assert (scope, path, verb, status) == (scope, path, verb, 403)
        assert (await served.ask("GET", "/extensions", **token))[0] == 200
    assert not (served.world.path / "consents.json").exists()
