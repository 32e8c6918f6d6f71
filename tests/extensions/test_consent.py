"""Consent: no file is imported before a person has enabled exactly its bytes, and a faulty one
stops nothing else."""

import sys
from pathlib import Path
from typing import Any

import pytest

from agiraph import World, call, config, says
from agiraph.core.domain.errors import Conflict, Refused
from agiraph.core.home.layout import Home
from agiraph.doctor import surroundings
from agiraph.doctor.checkup import Checkup
from agiraph.features.backup.archive import belongs_to_one_home
from agiraph.features.extensions import commands, pinned
from agiraph.features.extensions.configured import TOOLS, ToolRule
from agiraph.features.extensions.finding import find_one
from agiraph.features.extensions.loading import MOST_SHOWN, Extensions, import_declared
from agiraph.features.extensions.own_threads import OwnThreads
from tests.extensions.files import AT, put
from tests.tools.tool_calls import ToolAnswer, run_calls

GREET = '''
from agiraph import tool

@tool(touches="nothing")
def greet(name: str) -> str:
    """Greet somebody."""
    return f"{hello} {{name}}"
'''
IMPORTED: list[str] = []
"""Filled by files of these tests when they are imported."""


def greeting(word: str = "Hello", *, name: str = "greet") -> str:
    return (
        GREET.replace("{hello}", word).replace("{{name}}", "{name}").replace("greet(", f"{name}(")
    )


def noting(word: str) -> str:
    return f"import tests.extensions.test_consent as t\nt.IMPORTED.append({word!r})\n"


def opened(home: Path, **more: Any) -> Extensions:
    return Extensions(home=Home.open(home), **more)


async def states(extensions: Extensions) -> dict[str, str]:
    await extensions.refresh()
    return {one.id: one.state for one in extensions.statuses}


async def problems(extensions: Extensions) -> dict[str, str]:
    await extensions.refresh()
    return {one.id: one.problem for one in extensions.statuses if one.problem}


async def test_a_file_is_imported_only_after_a_person_has_enabled_it(tmp_path: Path) -> None:
    IMPORTED.clear()
    sha256 = put(tmp_path, "tools/hi.py", noting("hi") + greeting(), enabled=False)
    extensions = opened(tmp_path)

    assert await states(extensions) == {"tools/hi.py": "off"}
    assert [one.state for one in await extensions.listed()] == ["off"]
    assert IMPORTED == []

    enabled = await extensions.enable("hi", sha256=sha256, at=AT)
    assert (enabled.state, enabled.sha256, enabled.enabled_at) == ("on", sha256, AT)
    assert [(offer.name, offer.touches) for offer in enabled.offers] == [("greet", "nothing")]
    assert IMPORTED == ["hi"]

    await extensions.disable("tools/hi.py")
    assert await states(extensions) == {"tools/hi.py": "off"}


async def test_an_agent_gets_an_enabled_tool_and_loses_it_when_its_file_changes(
    tmp_path: Path,
) -> None:
    put(tmp_path, "tools/hi.py", greeting())
    async with World(tmp_path, easy_endings=True) as world:
        _, told = await run_calls(world, call("greet", name="Bob"))
        assert told == [ToolAnswer("Hello Bob")]

        put(tmp_path, "tools/hi.py", greeting("Go away,"), enabled=False)
        for by in ("bob", "carol"):
            _, told = await run_calls(world, call("greet", name="Bob"), by=by)
            assert told[0].text.startswith("There is no tool called 'greet'.")
        [report] = [item for item in await world.inbox() if item.title == "tools/hi.py is off"]
        assert report.text == (
            "tools/hi.py has changed since you enabled it, so agents no longer have it. Look at "
            "it, and enable it again if you want: agiraph tools enable tools/hi.py"
        )

        await world.runtime.part(Extensions).enable("tools/hi.py", at=AT)
        _, told = await run_calls(world, call("greet", name="Bob"), by="eve")
        assert told == [ToolAnswer("Go away, Bob")]


async def test_a_changed_file_is_off_and_says_so(tmp_path: Path) -> None:
    IMPORTED.clear()
    put(tmp_path, "tools/hi.py", greeting())
    put(tmp_path, "tools/hi.py", noting("changed") + greeting(), enabled=False)
    extensions = opened(tmp_path)
    await extensions.refresh()

    [one] = extensions.statuses
    assert one.state == "changed"
    assert one.summary == ("changed since it was enabled, so it is off; enable it again to use it")
    assert IMPORTED == []


async def test_consent_is_for_the_bytes_that_a_person_has_seen(tmp_path: Path) -> None:
    seen = put(tmp_path, "tools/hi.py", greeting(), enabled=False)
    put(tmp_path, "tools/hi.py", noting("unseen") + greeting(), enabled=False)
    with pytest.raises(Conflict, match="has changed since you looked"):
        await opened(tmp_path).enable("tools/hi.py", sha256=seen, at=AT)
    assert not (tmp_path / pinned.FILE).exists()


async def test_a_file_that_is_replaced_after_the_check_is_imported_as_it_was_checked(
    tmp_path: Path,
) -> None:
    """The first line of the file replaces the file: a second read would find other bytes."""
    IMPORTED.clear()
    path = tmp_path / "tools" / "hi.py"
    swap = f"import pathlib\npathlib.Path({str(path)!r}).write_text({noting('swapped')!r})\n"
    put(tmp_path, "tools/hi.py", swap + noting("checked") + greeting())

    extensions = opened(tmp_path)
    await extensions.refresh()
    assert IMPORTED == ["checked"]
    assert await states(extensions) == {"tools/hi.py": "changed"}


async def test_a_file_that_is_replaced_before_its_import_is_imported_as_it_was_hashed(
    tmp_path: Path,
) -> None:
    IMPORTED.clear()
    put(tmp_path, "tools/hi.py", noting("hashed") + greeting())
    found = find_one(Home.open(tmp_path), "tools/hi.py")
    put(tmp_path, "tools/hi.py", noting("replaced") + greeting(), enabled=False)
    await import_declared(found, OwnThreads())
    assert IMPORTED == ["hashed"]


HANG = "while True:\n    pass\n"
FAULTS = {
    "syntax": ("def (:", "it is not valid Python: invalid syntax (line 1)."),
    "zero": ("x = 1 / 0", "it fails while it is imported: ZeroDivisionError: division by zero."),
    "exit": ("import sys\nsys.exit(0)", "it ends the program while it is imported (SystemExit)."),
    "base": (
        "raise BaseException('no')",
        "it fails while it is imported: BaseException: no.",
    ),
    "needs": (
        "import a_package_that_does_not_exist",
        "it cannot be imported: ModuleNotFoundError: No module named "
        "'a_package_that_does_not_exist'. Install what it needs.",
    ),
    "null": ("x = '\0'", "it is not valid Python: source code string cannot contain null bytes"),
    "empty": ("x = 1", "it declares nothing for tools; mark a function with @tool(…)."),
    "shadow": (
        greeting(name="bash"),
        "the name 'bash' belongs to a tool of agiraph; choose another.",
    ),
    "untyped": (
        'from agiraph import tool\n@tool(touches="nothing")\ndef act(x):\n    """Act."""\n',
        "the argument 'x' of the tool 'act' has no type; write x: str or another type.",
    ),
    "hints": (
        'from agiraph import tool\n@tool(touches="nothing")\n'
        'def act(x: "Missing"):\n    """Act."""\n',
        "NameError: name 'Missing' is not defined.",
    ),
    "misused": (
        "from agiraph import tool\n@tool\ndef act(x: str):\n    pass\n",
        "it fails while it is imported: TypeError: tool() takes 0 positional arguments but 1 was "
        "given.",
    ),
}


@pytest.mark.slow
async def test_a_faulty_file_is_named_and_stops_nothing_else(tmp_path: Path) -> None:
    for name, (text, _) in FAULTS.items():
        put(tmp_path, f"tools/{name}.py", text)
    put(tmp_path, "tools/zz_fine.py", greeting())
    extensions = opened(tmp_path)

    found = await problems(extensions)
    assert {name: found[f"tools/{name}.py"][: len(said)] for name, (_, said) in FAULTS.items()} == {
        name: said for name, (_, said) in FAULTS.items()
    }
    fine = [one for one in extensions.statuses if one.state == "on"]
    assert [one.id for one in fine] == ["tools/zz_fine.py"]


async def test_an_import_that_never_ends_is_named_and_stops_nothing_else(tmp_path: Path) -> None:
    put(tmp_path, "tools/fine.py", greeting())
    extensions = opened(tmp_path)
    assert await problems(extensions) == {}
    extensions.import_timeout_s = 0.1  # however short: no other file is imported from here on

    put(tmp_path, "tools/hangs.py", HANG)
    said = "it was still importing after 0.1 seconds."
    assert await problems(extensions) == {"tools/hangs.py": said}
    assert [one.id for one in extensions.statuses if one.state == "on"] == ["tools/fine.py"]


@pytest.mark.parametrize("name", ["syntax", "exit", "shadow"])
async def test_a_faulty_file_cannot_be_enabled(tmp_path: Path, name: str) -> None:
    put(tmp_path, f"tools/{name}.py", FAULTS[name][0], enabled=False)
    with pytest.raises(Refused, match="was not enabled"):
        await opened(tmp_path).enable(name, at=AT)
    assert not (tmp_path / pinned.FILE).exists()


async def test_a_file_that_never_ends_its_import_cannot_be_enabled(tmp_path: Path) -> None:
    put(tmp_path, "tools/hangs.py", HANG, enabled=False)
    with pytest.raises(Refused, match="was not enabled: it was still importing"):
        await opened(tmp_path, import_timeout_s=0.1).enable("hangs", at=AT)
    assert not (tmp_path / pinned.FILE).exists()


async def test_of_two_files_with_one_tool_the_second_is_off_and_named(tmp_path: Path) -> None:
    put(tmp_path, "tools/a.py", greeting("First"))
    put(tmp_path, "tools/b.py", greeting("Second"))
    put(
        tmp_path,
        "tools/c.py",
        greeting()
        + greeting("Again").replace("def greet", "def other")
        + 'again = tool(touches="nothing", name="greet2")(greet)\n',
    )
    extensions = opened(tmp_path)
    assert await states(extensions) == {
        "tools/a.py": "on",
        "tools/b.py": "faulty",
        "tools/c.py": "on",
    }
    assert (await problems(extensions))["tools/b.py"] == (
        "another extension, or itself, declares 'greet' already; rename one of them."
    )


async def test_links_pipes_large_files_and_odd_names_are_named_or_left_out(tmp_path: Path) -> None:
    import os

    put(tmp_path, "outside.py", noting("link"), enabled=False)
    put(tmp_path, "tools/large.py", "#" * 2**20 + "##", enabled=False)
    put(tmp_path, "tools/grüße.py", greeting())
    put(tmp_path, "tools/_helper.py", noting("helper"), enabled=False)
    put(tmp_path, "tools/.hidden.py", noting("hidden"), enabled=False)
    put(tmp_path, "tools/notes.txt", "no code", enabled=False)
    (tmp_path / "tools" / "link.py").symlink_to(tmp_path / "outside.py")
    os.mkfifo(tmp_path / "tools" / "pipe.py")
    extensions = opened(tmp_path)

    assert await states(extensions) == {
        "tools/grüße.py": "on",
        "tools/large.py": "off",
        "tools/link.py": "off",
        "tools/pipe.py": "off",
    }
    found = await problems(extensions)
    assert found["tools/large.py"] == "it is longer than 1024 KiB; make it a package."
    assert (
        found["tools/link.py"]
        == found["tools/pipe.py"]
        == ("it is not a regular file; put the file itself there, not a link to it.")
    )
    with pytest.raises(Refused, match="cannot be enabled: it is not a regular file"):
        await extensions.enable("tools/link.py", at=AT)


async def test_a_tools_folder_that_is_a_link_offers_nothing(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere", "tools/hi.py", noting("elsewhere"), enabled=False)
    home = tmp_path / "home"
    home.mkdir()
    (home / "tools").symlink_to(tmp_path / "elsewhere" / "tools")
    assert await states(opened(home)) == {}


async def test_no_call_of_an_agent_enables_a_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    IMPORTED.clear()
    sha256 = put(home, "tools/hi.py", noting("by an agent") + greeting(), enabled=False)
    consent = f'{{"enabled": {{"tools/hi.py": {{"sha256": "{sha256}", "at": "{AT:%FT%TZ}"}}}}}}'
    planted = f"mkdir -p {home}/tools; echo '{consent}' > {home}/consents.json"
    async with World(home, sandbox_readable=(), easy_endings=True) as world:
        _, told = await run_calls(
            world,
            call("bash", command=f"{planted}; agiraph tools enable hi; echo over"),
            call("write_file", path="../../../../consents.json", content=consent),
            call("write_file", path=f"{home}/consents.json", content=consent),
            call("write_file", path="agents/../../../consents.json", content=consent),
        )
        assert "over" in told[0].text
        assert [answer.failed for answer in told[1:]] == [True, True, True]
        _, told = await run_calls(world, call("greet", name="Bob"), by="bob")
        assert told[0].failed
    assert not (home / pinned.FILE).exists()
    assert IMPORTED == []


def test_consents_are_neither_backed_up_nor_restored() -> None:
    assert [
        belongs_to_one_home(name) for name in ("consents.json", "consents.lock", "tools/hi.py")
    ] == [
        True,
        True,
        False,
    ]


async def test_doctor_names_what_is_faulty_changed_or_missing(tmp_path: Path) -> None:
    put(tmp_path, "tools/bad.py", "x = 1 / 0")
    put(tmp_path, "tools/hi.py", greeting())
    put(tmp_path, "tools/hi.py", greeting("Other"), enabled=False)
    put(tmp_path, "tools/new.py", greeting(), enabled=False)
    put(
        tmp_path,
        "agiraph.toml",
        '[secrets]\nkey = "env:NOT_SET_HERE"\n[search]\nprovider = "own:wiki"\n'
        '[channels.pager]\ntype = "own:pager"\n[tools.gone]\nshown = false\n',
        enabled=False,
    )
    checkup = Checkup(config.load({"AGIRAPH_HOME": str(tmp_path)}), online=False)
    surroundings.check_secrets(checkup)
    await commands.check(checkup)
    assert [(one.name, one.verdict, one.what, one.details) for one in checkup.findings] == [
        (
            "secrets",
            "problem",
            "1 cannot be used.",
            ["The secret 'key' is empty: set NOT_SET_HERE."],
        ),
        (
            "own tools",
            "problem",
            "5 cannot be used; `agiraph tools` lists all.",
            [
                "tools/bad.py: it fails while it is imported: ZeroDivisionError: division by zero.",
                "tools/hi.py: changed since it was enabled, so it is off; enable it again to use "
                "it",
                "[search] names own:wiki, which no enabled file in engines/ declares.",
                "[tools.gone] names a tool that no enabled file in tools/ declares.",
                "[channels.pager] names own:pager, which no enabled file in channels/ declares.",
            ],
        ),
        (
            "own tools",
            "note",
            "Not enabled: tools/new.py. To use one: agiraph tools enable.",
            [],
        ),
    ]


@pytest.mark.parametrize("text", ["{", "[]", '{"enabled": {"tools/hi.py": true}}', ""])
async def test_damaged_consents_enable_nothing(tmp_path: Path, text: str) -> None:
    put(tmp_path, "tools/hi.py", greeting())
    (tmp_path / pinned.FILE).write_text(text)
    extensions = opened(tmp_path)
    assert await states(extensions) == {"tools/hi.py": "off"}
    assert extensions.problem == (
        "consents.json in the home cannot be used: it is damaged; remove it and enable again what "
        "you use."
    )
    with pytest.raises(Refused, match="damaged"):
        await extensions.enable("tools/hi.py", at=AT)
    assert (tmp_path / pinned.FILE).read_text() == text


async def test_consents_that_others_can_change_enable_nothing(tmp_path: Path) -> None:
    put(tmp_path, "tools/hi.py", greeting())
    assert (tmp_path / pinned.FILE).stat().st_mode & 0o777 == 0o600
    (tmp_path / pinned.FILE).chmod(0o666)
    extensions = opened(tmp_path)
    assert await states(extensions) == {"tools/hi.py": "off"}
    assert "others can change it" in extensions.problem


async def test_settings_say_which_roles_and_teams_get_a_tool(tmp_path: Path) -> None:
    put(tmp_path, "tools/hi.py", greeting())
    rules = {"greet": ToolRule(teams=frozenset({"Shop"}), roles=frozenset({"coordinator"}))}
    async with World(tmp_path, features={"extensions": rules}, easy_endings=True) as world:
        _, told = await run_calls(world, call("greet", name="Bob"), name="Shop")
        assert told == [ToolAnswer("Hello Bob")]
        _, told = await run_calls(world, call("greet", name="Bob"), by="bob", name="Office")
        assert told[0].failed


async def test_a_specialist_gets_the_tool_that_its_file_names_whatever_the_roles(
    tmp_path: Path,
) -> None:
    put(tmp_path, "tools/hi.py", greeting())
    put(
        tmp_path,
        "agents/clerk.md",
        "---\nname: clerk\ndescription: Greets.\ntools: greet\nmodel: scripted/clerk\n---\n"
        "Greet.\n",
        enabled=False,
    )
    rules = {"greet": ToolRule(roles=frozenset())}
    async with World(tmp_path, features={"extensions": rules}, easy_endings=True) as world:
        clerk = world.script(
            "clerk", says(call("greet", name="Bob")), says(call("publish", summary="greeted"))
        )
        world.script(
            "ada",
            says(call("assign_task", agent="clerk", task="Greet Bob", description="Greet")),
            says(call("finish", summary="done")),
        )
        await world.found("Welcome our guests at the door")
        await world.settle()
    assert clerk.requests[1].turns[-1].text == "Hello Bob"


async def test_only_the_first_own_tools_are_in_every_request(tmp_path: Path) -> None:
    for number in range(MOST_SHOWN + 2):
        put(tmp_path, f"tools/t{number}.py", greeting(name=f"greet_{number:02}"))
    async with World(tmp_path, easy_endings=True) as world:
        ada = world.script("ada", says(call("finish", summary="done")))
        await world.found("Do it")
        await world.settle()
    asked = ada.requests[0]
    shown = [name for name in asked.tools if name.startswith("greet_")]
    assert shown == [f"greet_{number:02}" for number in range(MOST_SHOWN)]
    assert "greet_08, greet_09" in asked.system


@pytest.mark.parametrize(
    "written", [5, {"greet": 5}, {"greet": {"roles": ["boss"]}}, {"greet": {"team": ["x"]}}]
)
def test_a_wrong_rule_is_refused_with_its_entry(written: Any) -> None:
    from agiraph.core.domain.errors import Misconfigured

    with pytest.raises(Misconfigured, match=r"agiraph\.toml"):
        TOOLS.read_each(Path("agiraph.toml"), written)


def test_modules_of_failed_imports_are_forgotten() -> None:
    assert [name for name in sys.modules if name.startswith("agiraph_own.tools.syntax")] == []
