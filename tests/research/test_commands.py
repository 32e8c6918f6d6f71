"""The commands of research: start it, ask again and again, list it, and see what it rests on."""

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from agiraph.cli import agiraph
from agiraph.testing.clock import ManualClock
from tests.api.serving import TOKEN, serving
from tests.local_web import local_web
from tests.research.kit import FACTS, QUESTION, SITES, TALL, Cast, reads


@pytest.mark.slow
async def test_a_question_is_asked_listed_shown_and_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast = Cast(readers={QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL))})
    clock = ManualClock()
    async with (
        local_web(clock, SITES) as web,
        serving(tmp_path / "home", clock=clock, web=web.access, model="scripted/rob") as served,
    ):
        served.world.model("rob", cast)
        await served.ask("POST", "/teams", {"goal": "Towers", "name": "towers", "start": False})
        monkeypatch.setenv("AGIRAPH_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("AGIRAPH_PORT", str(served.port))
        monkeypatch.setenv("AGIRAPH_TOKEN", TOKEN)

        async def run(*words: str) -> str:
            done = await asyncio.to_thread(CliRunner().invoke, agiraph, list(words))
            assert done.exit_code == 0, done.output
            return done.output

        assert await run("research", "towers") == "There is no research yet.\n"
        started = await run("research", "towers", QUESTION, "--depth", "quick")
        node = started.split()[4].rstrip(".")
        await served.world.settle()
        assert f"{node}  done" in await run("research", "towers")
        shown = (await run("evidence", node)).splitlines()
        assert shown[1] == ("done, ended, depth quick, 0 of 4 searches, 1 of 6 pages, $0.00")
        assert shown[4:7] == [
            "e1  It is 330 metres tall.",
            f"    “{TALL}”",
            f"    tower.example, {FACTS} (supports, unknown, exact)",
        ]

        said = await run("research", "towers", QUESTION, "--every", "week")
        assert "Asked again and again as trig_" in said
        trigger = said.split()[-1]
        assert QUESTION in await run("triggers", "towers", "--json")
        assert await run("triggers", "towers", "--cancel", trigger) == f"{trigger} has ended.\n"
