"""docs/own-tools.md: what its reader writes by following it works, to the letter."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from agiraph import World, call, config, says
from agiraph.core.domain.persons import OWNER
from agiraph.core.home.layout import Home
from agiraph.features.channels import pairing
from agiraph.features.extensions.loading import Extensions, unopened
from tests.cli.shell import Shell
from tests.docs.blocks import blocks, markdown_file, python_files
from tests.extensions.files import AT
from tests.runtime.waiting import until
from tests.tools.tool_calls import ToolAnswer, run_calls

DOCUMENT = "own-tools.md"
KEY = "the-key-of-the-parcel-service"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def write(home: Path, *names: str, **replaced: str) -> None:
    """Write files of the document into the home."""
    files = python_files(DOCUMENT)
    for name in names:
        text = files[name]
        for old, new in replaced.items():
            text = text.replace(old.replace("_", "/"), new)
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


async def enable(home: Path, name: str) -> None:
    """Enable a file as `agiraph tools enable` does."""
    settings = config.load({"AGIRAPH_HOME": str(home), "PARCEL_KEY": KEY})
    await unopened(settings).enable(name, at=AT)


@asynccontextmanager
async def world(home: Path, settings: Sequence[str] = ()) -> AsyncGenerator[World]:
    """Open a world as the settings of this home say."""
    (home / "agiraph.toml").write_text("\n".join(settings))
    read = config.load({"AGIRAPH_HOME": str(home), "PARCEL_KEY": KEY})
    async with World(
        home,
        features=read.features,
        secrets=read.secrets,
        web=read.web,
        easy_endings=True,
    ) as opened:
        yield opened


async def test_a_tool_is_written_enabled_and_called(agiraph: Shell) -> None:
    write(agiraph.home, "tools/weather.py")
    with (agiraph.home / "tools/weather.py").open("a") as file:
        file.write("print('noise')\n")
    commands = [line for body in blocks(DOCUMENT, "") for line in body.splitlines()]
    assert [line.partition("#")[0].split() for line in commands] == [
        ["$", "agiraph", "tools"],
        ["$", "agiraph", "tools", "enable", "weather"],
    ]
    listed = await agiraph("tools")
    assert listed.out.split()[3:5] == ["tools/weather.py", "off"]
    ended = await agiraph("tools", "enable", "weather")
    assert (ended.code, ended.err) == (0, "noise\n")
    assert "It offers: feels_like (nothing)." in ended.out
    listed = await agiraph("tools", "--json")
    assert [one["state"] for one in orjson.loads(listed.out)] == ["on"]
    async with world(agiraph.home) as opened:
        _, told = await run_calls(opened, call("feels_like", celsius=3, wind_kmh=20))
    assert told == [ToolAnswer("It feels like 1.0 degrees.")]


async def test_a_tool_with_a_secret_a_command_and_rules_is_given_to_a_specialist(
    home: Path,
) -> None:
    write(home, "tools/parcels.py")
    (home / "agents").mkdir()
    specialist = markdown_file(DOCUMENT).replace(
        "tools: track_parcel", "model: scripted/clerk\ntools: track_parcel"
    )
    (home / "agents" / "parcel-clerk.md").write_text(specialist)
    secrets, rules, *_ = blocks(DOCUMENT, "toml")
    lines = [line for line in secrets.splitlines() if "mail_password" not in line]
    rules = rules.replace('teams = ["Shop"]', 'teams = ["Post office"]')
    (home / "agiraph.toml").write_text("\n".join([*lines, rules]))
    await enable(home, "parcels")

    async with world(home, [*lines, rules]) as opened:
        clerk = opened.script(
            "clerk",
            says(call("track_parcel", number="77")),
            says(call("publish", summary="It is in Oslo")),
        )
        task = {"task": "Find parcel 77", "description": "Find a parcel"}
        opened.script(
            "ada",
            says(call("assign_task", agent="parcel-clerk", **task)),
            says(call("finish", summary="done")),
        )
        await opened.found("Answer the customer on the phone", name="Post office")
        await opened.settle()
    told = clerk.requests[1].turns[-1].text
    assert f'"key_length": "{len(KEY)}"' in told
    assert '"command": "0"' in told
    assert KEY not in str(clerk.requests)


async def test_an_engine_is_written_enabled_and_asked(home: Path) -> None:
    write(home, "engines/wiki.py")
    await enable(home, "wiki")
    async with world(home, ["[search]", 'provider = "own:wiki"']) as opened:
        _, told = await run_calls(opened, call("web_search", query="holidays in May"))
    assert "https://wiki.example/holidays" in told[0].text
    assert "28 days a year" in told[0].text


async def test_a_channel_is_written_enabled_and_gets_a_question(home: Path, tmp_path: Path) -> None:
    logbook = tmp_path / "logbook.txt"
    write(home, "channels/logbook.py", _tmp_logbook=str(logbook.with_suffix("")))
    await enable(home, "logbook")
    async with world(home, ["[channels.logbook]", 'type = "own:logbook"']) as opened:
        opened.script("ada", says(call("ask_human", question="Red or blue?")))
        await opened.found("Paint it", name="Painters")
        await opened.settle()
    [line] = logbook.read_text().splitlines()
    assert line.endswith("Painters: Red or blue?")


async def test_a_channel_that_receives_is_written_paired_and_asked(
    home: Path, tmp_path: Path
) -> None:
    box = tmp_path / "dropbox"
    (box / "in").mkdir(parents=True)
    write(home, "channels/dropbox.py", _tmp_dropbox=str(box))
    await enable(home, "dropbox")
    async with world(home, ["[channels.box]", 'type = "own:dropbox"']) as opened:
        made = await opened.store.write(pairing.new_code, OWNER, "box")

        async def is_taken() -> bool:
            taken = box / "in" / "1.txt.taken"
            return taken.exists() and bool(taken.read_text())  # it exists before it is written

        (box / "in" / "1.part").write_text(made.code)
        (box / "in" / "1.part").rename(box / "in" / "1.txt")
        await until(opened, is_taken)
        assert (box / "in" / "1.txt.taken").read_text().startswith("Paired:")
        opened.script("ada", says(call("ask_human", question="Red or blue?")))
        await opened.found("Paint it", name="Painters")
        await opened.settle()
    [sent] = box.glob("*.txt")
    assert "Red or blue?" in sent.read_text()


async def test_a_provider_is_written_enabled_and_asked(home: Path) -> None:
    write(home, "providers/parrot.py")
    await enable(home, "parrot")
    async with world(home) as opened:
        founded = await opened.found("Say it again", model="parrot/grey")
        await opened.settle()
        [goal] = await opened.board(founded.team.id)
    assert (goal.status, goal.result) == ("completed", "grey: Say it again")


async def test_the_test_of_the_document_passes(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(python_files(DOCUMENT)["test_weather.py"], "test_weather.py", "exec"), names)
    await names["test_an_agent_gets_the_answer"](tmp_path)


@pytest.mark.slow
async def test_a_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed as pip would: the module, and metadata with the entry point of the document."""
    *_, points = blocks(DOCUMENT, "toml")
    site = tmp_path / "site"
    package = {
        "parcel_tools/__init__.py": "",
        "parcel_tools/tools.py": python_files(DOCUMENT)["tools/weather.py"],
        "parcel_tools-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: parcel-tools\n"
        "Version: 1\n",
        "parcel_tools-1.dist-info/entry_points.txt": points.replace(
            '[project.entry-points."agiraph.tools"]', "[agiraph.tools]"
        ).replace('"', ""),
    }
    package["parcel_tools-1.dist-info/RECORD"] = "".join(f"{name},,\n" for name in package)
    for name, text in package.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    monkeypatch.syspath_prepend(str(site))
    home = Home.open(tmp_path / "home")

    async def state() -> list[tuple[str, str]]:
        return [(one.id, one.state) for one in await Extensions(home=home).listed()]

    identity = "package:parcel-tools/tools/parcels"
    assert await state() == [(identity, "off")]
    assert "parcel_tools" not in sys.modules
    await Extensions(home=home).enable(identity, at=AT)
    assert await state() == [(identity, "on")]
    (site / "parcel_tools/tools.py").write_text("raise SystemExit('other code')")
    assert await state() == [(identity, "changed")]
