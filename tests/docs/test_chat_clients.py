"""docs/chat-clients.md: its program runs as it stands, and its settings load."""

import asyncio
from pathlib import Path

import pytest
import yaml

from agiraph import call, config, says
from tests.api.serving import TOKEN, serving
from tests.docs.blocks import blocks

DOCUMENT = "chat-clients.md"


@pytest.mark.slow
async def test_the_program_of_the_document_talks_to_an_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [program] = blocks(DOCUMENT, "python")
    async with serving(tmp_path / "home", reply_model="scripted/mouth") as served:
        replies = ("NVIDIA is up.", "AMD too.")
        served.world.script("mouth", *(says(text, call("no_work_needed")) for text in replies))
        await served.world.found("Track stocks", name="Stocks", start=False)
        named = {"server": served.origin, "token": TOKEN}
        await asyncio.to_thread(exec, program, named)
        named["client"].close()  # type: ignore[attr-defined]
    assert capsys.readouterr().out == "NVIDIA is up.\nAMD too.\n"


def test_the_settings_of_the_document_load(tmp_path: Path) -> None:
    [written] = blocks(DOCUMENT, "toml")
    (tmp_path / config.FILE).write_text(written)
    address = config.load({"AGIRAPH_HOME": str(tmp_path)}).address
    assert address.names == ("host.docker.internal",)
    [librechat] = blocks(DOCUMENT, "yaml")
    [endpoint] = yaml.safe_load(librechat)["endpoints"]["custom"]
    assert endpoint["baseURL"] == f"{address.url}/v1"
