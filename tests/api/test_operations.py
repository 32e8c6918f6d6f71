"""Operations: the owner sees the state of the server, checks it, and stops and resumes all work."""

import asyncio
import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from agiraph import config, redaction
from agiraph.api.routes.operations import work_stop
from agiraph.core.domain.persons import OWNER
from agiraph.core.home import stored_keys
from agiraph.core.home.layout import Home
from agiraph.core.home.stored_keys import StoredKeys
from agiraph.core.runtime.background.upkeep import use_stored_keys
from agiraph.core.services import access
from agiraph.core.services.lifecycle.teams import WorkStop
from agiraph.doctor.examination import Examination
from agiraph.models.facts.prices import Prices
from agiraph.models.registry import Account, Keys
from agiraph.models.searching import vendor_engine
from agiraph.models.vendors import VENDOR_BY_NAME, VENDORS, Vendor
from agiraph.redaction import redact
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import Status
from agiraph.web.access import Web
from agiraph.web.open_sources import OpenEngine
from tests.api.serving import Served, serving
from tests.providers.vendor_searches import ANSWERS, vendor
from tests.providers.vendor_searches import KEY as VENDOR_KEY

READS = ("/operations", "/operations/providers")
CHANGES = (
    ("/operations/doctor", None),
    ("/operations/stop", None),
    ("/operations/resume", None),
    ("/operations/keys", {"key": "sk-ant-stranger-1234"}),
    ("/operations/default-model", {"model": "demo"}),
)
KEY = "sk-proj-abcdefghijklmnop1234567890"


async def test_only_the_owner_sees_and_changes_operations(served: Served) -> None:
    for scope in ("read", "talk", "operate"):
        _, made = await served.ask("POST", "/tokens", {"name": scope, "scope": scope})
        token = {"Authorization": f"Bearer {made['secret']}"}
        asked = [(await served.ask("GET", path, **token))[0] for path in READS]
        asked += [(await served.ask("POST", path, body, **token))[0] for path, body in CHANGES]
        for path in ("/extensions/content?id=tools/a.py", "/skills/content?id=a"):
            asked.append((await served.ask("GET", path, **token))[0])
        assert (scope, set(asked)) == (scope, {403})
    # A page of another site cannot send these requests with the person's cookie.
    for path, body in CHANGES:
        status, _ = await served.ask("POST", path, body, Sec_Fetch_Site="cross-site")
        assert (path, status) == (path, 403)


async def test_an_emergency_stop_is_seen_in_the_status_and_the_audit(served: Served) -> None:
    ada = served.world.script("ada", says(call("finish", summary="Done.")))
    ada.gate = asyncio.Event()
    await served.ask("POST", "/teams", {"goal": "Count the beans"})
    async with asyncio.timeout(10):
        while not ada.requests:  # noqa: ASYNC110
            await asyncio.sleep(0)
    status, stop = await served.ask("POST", "/operations/stop")
    assert (status, stop["running"]) == (200, 1)
    assert (stop["by"], stop["by_kind"]) == ("admin", "owner")
    assert [task["agent"] for task in stop["interrupted"]] == ["coordinator"]
    await served.world.settle()
    _, found = await served.ask("GET", "/operations")
    assert found["stopped"] == stop
    assert found["queue"] == {"running": 0, "queued": 1, "waiting": 0, "pending": 0}
    assert found["workers"] == [{"name": f"process {os.getpid()}", "silent_s": 0.0, "failing": []}]
    assert (await served.ask("GET", "/status"))[1]["stopped_at"] == stop["at"]

    ada.gate.set()
    assert await served.ask("POST", "/operations/resume") == (200, {"queues": 1})
    await served.world.settle()
    _, found = await served.ask("GET", "/operations")
    assert (found["stopped"], found["queue"]["queued"]) == (None, 0)
    _, audit = await served.ask("GET", "/audit?newest=true&path=/api/operations")
    assert [(entry["path"], entry["status"]) for entry in audit] == [
        ("/api/operations/resume", 200),
        ("/api/operations/stop", 200),
    ]


async def test_the_audit_is_filtered_and_paged_newest_first(served: Served) -> None:
    _, made = await served.ask("POST", "/tokens", {"name": "100%_sure", "scope": "operate"})
    token = {"Authorization": f"Bearer {made['secret']}"}
    for _ in range(3):
        await served.ask("POST", "/stop", **token)
    whole = (await served.ask("GET", "/audit"))[1]
    assert (await served.ask("GET", "/audit?newest=true"))[1] == whole[::-1]
    assert (await served.ask("GET", "/audit?newest=true&limit=2"))[1] == whole[:-3:-1]
    after = whole[-2]["id"]
    assert (await served.ask("GET", f"/audit?newest=true&after={after}"))[1] == whole[-3::-1]
    # `%` and `_` are no wildcards.
    for who, count in (("100%25_SURE", 3), ("100%25%25", 0), ("admin", 1)):
        assert (who, len((await served.ask("GET", f"/audit?who={who}"))[1])) == (who, count)
    at = whole[0]["at"].replace("+00:00", "Z")
    assert len((await served.ask("GET", f"/audit?until={at}"))[1]) == 0
    assert len((await served.ask("GET", f"/audit?since={at}"))[1]) == 4


async def test_a_token_shows_when_it_was_last_used(served: Served) -> None:
    _, made = await served.ask("POST", "/tokens", {"name": "report"})
    assert made["used_at"] is None
    await served.ask("GET", "/teams", Authorization=f"Bearer {made['secret']}")
    [listed] = (await served.ask("GET", "/tokens"))[1]
    assert listed == {key: made[key] for key in made if key != "secret"} | {
        "used_at": served.world.clock.now().isoformat().replace("+00:00", "Z")
    }


async def test_the_health_checks_are_those_of_doctor_and_name_no_secret(served: Served) -> None:
    status, found = await served.ask("POST", "/operations/doctor")
    names = [finding["name"] for finding in found["findings"]]
    assert (status, "sandbox" in names, "database" in names, "disk" in names) == (200, *[True] * 3)
    assert {"permissions", "background work", "model demo", "integrity", "work"} <= {*names}
    work = next(f for f in found["findings"] if f["name"] == "work")
    assert work == {
        "name": "work",
        "verdict": "fine",
        "what": "Nothing is stuck.",
        "details": [],
        "can_fix": False,
    }


async def test_the_health_checks_follow_the_running_server(served: Served) -> None:
    def failing() -> list[str]:
        raise OSError(errno.EIO, "Input/output error")

    runtime = served.world.runtime
    findings = await Examination(
        settings=config.load({"AGIRAPH_HOME": str(served.world.path)}),
        home=runtime.home,
        store=runtime.store,
        confinement=runtime.confinement,
        parts=runtime.parts,
        models=runtime.models,
        model=lambda: "scripted/new",
        failing=failing,
    )()
    verdicts = {finding.name: finding.verdict for finding in findings}
    # The default model is the one of now; a check that fails does not end the others.
    assert ("model demo" in verdicts, "model scripted/new" in verdicts) == (False, True)
    assert (verdicts["background work"], verdicts["database"]) == ("problem", "fine")


async def test_two_keys_that_are_tested_at_the_same_time_are_both_stored(tmp_path: Path) -> None:
    async with ModelServer([says("Hello.")] * 4) as model:
        keys = Keys({name: Account(base_url=model.openai_url) for name in ("openai", "xai")})
        async with serving(tmp_path, keys=keys, model="demo") as served:
            made = await asyncio.gather(
                served.ask("POST", "/operations/keys", {"key": KEY}),
                served.ask("POST", "/operations/keys", {"key": "xai-abcdefghijklmnop1234567890"}),
            )
        assert [view["is_stored"] for _, view in made] == [True, True]
    stored = stored_keys.read(tmp_path)
    assert {*stored.keys} == {"OPENAI_API_KEY", "XAI_API_KEY"}


def keyless(model: ModelServer) -> Keys:
    return Keys({"openai": Account(base_url=model.openai_url)})


async def test_a_key_is_tested_then_stored_for_its_owner_alone_and_used_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [says("Hello."), says(call("get_weather", city="Paris"))]
    async with (
        ModelServer(answers) as model,
        serving(tmp_path, keys=keyless(model), model="demo") as served,
    ):
        status, made = await served.ask("POST", "/operations/keys", {"key": f" {KEY}\n"})
        assert (status, made["provider"], made["is_stored"], made["is_default"]) == (
            200,
            "openai",
            True,
            True,
        )
        assert [(c["name"], c["verdict"]) for c in made["test"]["checks"]] == [
            ("words", "passed"),
            ("tool_call", "passed"),
        ]
        assert made["facts"]["window"]["value"] > 0
        _, models = await served.ask("GET", "/models")
        assert (models["default"], KEY in str(models), KEY in str(made)) == (
            made["model"],
            False,
            False,
        )
        _, [openai] = await served.ask("GET", "/operations/providers")
        assert (openai["name"], KEY in str(openai)) == ("openai", False)
    file = tmp_path / "keys.json"
    assert (oct(file.stat().st_mode & 0o777), KEY in file.read_text()) == ("0o600", True)
    assert (redact(f"key {KEY}"), KEY in caplog.text) == ("key [hidden]", False)


async def test_a_key_that_does_not_work_is_not_stored_and_not_quoted(tmp_path: Path) -> None:
    key = "sk-proj-nobody-knows-1234567890"
    wrong = Status(401, f"Incorrect API key provided: {key}")
    async with (
        ModelServer([wrong]) as model,
        serving(tmp_path, keys=keyless(model), model="demo") as served,
    ):
        _, made = await served.ask("POST", "/operations/keys", {"key": key})
        [check] = made["test"]["checks"]
        assert (made["is_stored"], check["verdict"], key in str(made)) == (False, "failed", False)
        assert check["advice"] == "Copy the key again, or enter another one."
        # What was not stored may be no key at all: it is not taken out of texts later.
        assert redact(f"is {key}") == f"is {key}"
        status, problem = await served.ask(
            "POST", "/operations/keys", {"key": "nobody-knows-this-form"}
        )
        assert (status, problem["detail"].partition(". ")[0]) == (
            422,
            "The provider cannot be recognised from the key",
        )
        names = ("nobody-knows-this-form", "team_01jx0123456789", "openai/gpt-oss-120b-latest")
        for word in ("x" * 40, "0123456789", *names):
            body = {"key": word, "provider": "" if word == names[0] else "openai"}
            status, _ = await served.ask("POST", "/operations/keys", body)
            assert (status, redact(f"is {word}")) == (422, f"is {word}")
        for body in ({"key": KEY, "provider": "ollama"}, {"key": "ä" + KEY}, {"key": 5}):
            status, problem = await served.ask("POST", "/operations/keys", body)
            assert (status, KEY in str(problem)) == (422, False)
    assert not (tmp_path / "keys.json").exists()


async def test_a_key_of_the_environment_is_not_replaced(tmp_path: Path) -> None:
    keys = Keys({"openai": Account(key="sk-from-the-environment")})
    async with serving(tmp_path, keys=keys, model="demo") as served:
        status, problem = await served.ask("POST", "/operations/keys", {"key": KEY})
    assert (status, problem["detail"].partition(",")[0]) == (
        409,
        "OPENAI_API_KEY is set in the environment",
    )


async def test_a_stored_key_is_removed_and_used_no_more(tmp_path: Path) -> None:
    async with (
        ModelServer([says("Hello."), says(call("get_weather", city="Paris"))] * 2) as model,
        serving(tmp_path, keys=keyless(model), model="demo") as served,
    ):

        async def openai() -> tuple[str, bool]:
            _, found = await served.ask("GET", "/models")
            [one] = [one for one in found["providers"] if one["name"] == "openai"]
            account = served.api.models.registry.account(VENDOR_BY_NAME["openai"])
            return account.key, one["has_stored_key"]

        # The second time the model is the default already.
        for _ in range(2):
            _, made = await served.ask("POST", "/operations/keys", {"key": KEY})
            assert (made["is_stored"], made["is_default"]) == (True, True)
        assert await openai() == (KEY, True)
        assert (await served.ask("DELETE", "/operations/keys/openai"))[0] == 204
        assert await openai() == ("", False)
        assert stored_keys.read(tmp_path).keys == {}
        # The key may still stand in what is written later.
        assert redact(f"key {KEY}") == "key [hidden]"
        for provider in ("openai", "ollama", "nobody"):
            status, problem = await served.ask("DELETE", f"/operations/keys/{provider}")
            assert (status, f"no stored key for '{provider}'" in problem["detail"]) == (404, True)


async def test_the_search_of_a_vendor_uses_a_removed_key_no_more(tmp_path: Path) -> None:
    async with vendor("openai", lambda number: ANSWERS["openai"]) as searched:
        url = searched.engine.base_url
        keys = Keys({"openai": Account(key=VENDOR_KEY, base_url=url, is_stored=True)})
        engine = vendor_engine(keys, Prices(), "openai", "")
        async with serving(tmp_path, keys=keys, web=Web(engine=engine)) as served:
            home = served.api.home
            stored_keys.write(home, StoredKeys(keys={"OPENAI_API_KEY": VENDOR_KEY}))
            search = says(call("web_search", query="sound bridge"))
            ada = served.world.script("ada", search, says(call("finish", summary="Done.")))
            await served.world.found("Look")
            await served.world.settle()
            assert len(searched.keys) == 1
            assert (await served.ask("DELETE", "/operations/keys/openai"))[0] == 204
            ada.lines = [search, says(call("finish", summary="Done."))]
            await served.world.found("Look again")
            await served.world.settle()
            [*_, answer] = [turn.text for turn in ada.requests[-1].turns if turn.role == "tool"]
    assert answer.startswith("The search engine (openai) has no key any more")
    assert len(searched.requests) == 1


async def test_an_engine_that_nobody_chose_follows_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = [says(call("web_search", query="bridge")), says(call("finish", summary="Done."))]
    unchosen = Web(engine=OpenEngine(sources=()), follows_keys=True)
    async with (
        vendor("openai", lambda number: ANSWERS["openai"]) as searched,
        World(tmp_path, keys=Keys({}), web=unchosen, easy_endings=True) as world,
    ):
        moved = replace(VENDOR_BY_NAME["openai"], base_url=searched.engine.base_url)
        monkeypatch.setitem(cast(dict[str, Vendor], VENDOR_BY_NAME), "openai", moved)
        ada = world.script("ada")

        async def answer_with(keys: dict[str, str]) -> str:
            # As each process reads the keys that another one has stored.
            stored_keys.write(world.runtime.home, StoredKeys(keys=keys))
            use_stored_keys(world.runtime.home, world.runtime.models)
            ada.lines = list(search)
            await world.found("Look")
            await world.settle()
            [*_, answer] = [turn.text for turn in ada.requests[-1].turns if turn.role == "tool"]
            return answer

        open_sources = "None of the open sources can be searched"
        assert (await answer_with({})).startswith(open_sources)
        [hit, *_] = (await searched.engine.search("bridge", limit=5)).hits
        assert hit.url in await answer_with({"OPENAI_API_KEY": VENDOR_KEY})
        assert (await answer_with({})).startswith(open_sources)
    assert len(searched.requests) == 2


async def test_a_key_of_the_environment_stays_in_use_if_the_same_stored_one_is_removed(
    tmp_path: Path,
) -> None:
    keys = Keys({"openai": Account(key=KEY)})
    async with serving(tmp_path, keys=keys, model="demo") as served:
        stored_keys.write(served.api.home, StoredKeys(keys={"OPENAI_API_KEY": KEY}))
        status, problem = await served.ask("POST", "/operations/keys", {"key": KEY})
        assert (status, "takes precedence" in problem["detail"]) == (409, True)
        assert (await served.ask("DELETE", "/operations/keys/openai"))[0] == 204
        account = served.api.models.registry.account(VENDOR_BY_NAME["openai"])
    assert account == Account(key=KEY)


@pytest.mark.usefixtures("no_secrets")
def test_a_key_is_the_environments_or_a_stored_one_however_often_the_settings_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in VENDORS:
        monkeypatch.delenv(one.key_variable or "NONE", raising=False)
    monkeypatch.setenv("XAI_API_KEY", KEY)
    home = Home.open(tmp_path)
    with home.folder:
        stored_keys.write(home, StoredKeys(keys={"OPENAI_API_KEY": KEY, "XAI_API_KEY": KEY}))
    for _ in range(2):
        found = config.load({**redaction.environment(), "AGIRAPH_HOME": str(tmp_path)}).keys
        assert {n: a for n, a in found.accounts.items() if a.key} == {
            "openai": Account(key=KEY, is_stored=True),
            "xai": Account(key=KEY),
        }


async def test_a_process_uses_the_keys_that_another_one_stores_and_removes(tmp_path: Path) -> None:
    keys = Keys({"openai": Account(key="sk-from-the-environment"), "xai": Account(base_url="x")})
    async with World(tmp_path, keys=keys) as world:
        home, models = world.runtime.home, world.runtime.models

        def known() -> dict[str, Account]:
            use_stored_keys(home, models)
            return {name: models.registry.account(VENDOR_BY_NAME[name]) for name in keys.accounts}

        before = known()
        assert before == keys.accounts
        stored_keys.write(home, StoredKeys(keys={"OPENAI_API_KEY": KEY, "XAI_API_KEY": KEY}))
        stored = Account(key=KEY, base_url="x", is_stored=True)
        assert known() == {**before, "xai": stored}
        stored_keys.write(home, StoredKeys())
        assert known() == before


async def test_who_stopped_the_work_is_named_without_an_id(served: Served) -> None:
    for kind, name in (("session", "browser"), ("token", "nightly (report)")):
        made = {"kind": kind, "name": name, "scope": "admin"}
        issued = await served.world.store.write(access.issue, OWNER, **made)
        found = await served.world.store.read(
            work_stop,
            WorkStop(
                at=issued.token.created_at,
                by=f"{name} ({issued.token.id})",
                running=0,
                queued=0,
                token_id=issued.token.id,
            ),
        )
        assert (found.by, found.by_kind) == (name, kind)
