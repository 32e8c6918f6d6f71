"""`agiraph prompts`: every prompt is shown as a model gets it, within its size."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

import agiraph.core.prompts
from agiraph import config
from agiraph.cli.prompts import (
    FULL,
    REQUESTS,
    SPECIALIST,
    TEXTS,
    Rendering,
    prompts,
    renderings,
)
from agiraph.core.home.specialists import specialists
from agiraph.core.prompts import prompt

RICH = """\
[commands.claude]
command = "claude -p"
[commands.codex]
command = "codex exec"
[servers.house]
base_url = "http://127.0.0.1:9/v1"
[models."house/small"]
window = 32768
strength = "fast, good at short tasks"
[search]
provider = "brave"
key_env = "SEARCH_KEY"
"""
FILES = sorted(path.stem for path in Path(agiraph.core.prompts.__file__).parent.glob("*.md"))
KEYS = {f"{name}_API_KEY": "k" for name in ("ANTHROPIC", "OPENAI", "GEMINI", "MISTRAL")}


@pytest.mark.slow
async def test_with_many_means_each_prompt_is_within_its_size(tmp_path: Path) -> None:
    (tmp_path / config.FILE).write_text(RICH)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "poet.md").write_text("---\ndescription: Writes verse.\n---\nRhyme.")
    environment = {"AGIRAPH_HOME": str(tmp_path), "SEARCH_KEY": "k", **KEYS}
    found = {each.name: each for each in await renderings(config.load(environment))}

    print(*(f"{each.name}: {each.tokens:,} of {each.most:,}" for each in found.values()), sep="\n")
    assert {name for name, each in found.items() if each.tokens > each.most} == set()
    assert {*REQUESTS, "poet", *specialists()} <= found.keys()
    assert [name for name in FILES if not _is_shown(name, found.values())] == []
    shown = found["coordinator"].text
    for line in (
        "- poet: Writes verse.\n",
        f"- {FULL} (yours)\n",
        "- house/small: window 32,768, fast, good at short tasks\n",
        "- anthropic/claude-sonnet-5-5: ",
        "Programs: cli:claude, cli:codex.\n",
        "- Web search is available.\n",
        "- Trust: standard. Once you have read words from outside, a person decides on ",
        "- Spent so far: $0.00 (no limit). You have 500 turns. All teams together may spend $50 ",
        "- On the team: nobody but you yet. At most 16 members at a time.\n",
    ):
        assert line in shown
    assert "Effort: a quick look" in found["worker"].text
    assert "anthropic/claude-" not in found["worker"].text


def _is_shown(name: str, found: Iterable[Rendering]) -> bool:
    """Say whether the longest passage of a prompt file without facts stands in a rendering."""
    words = max(re.split(r"\$\w+|\{[^}]*\}|\n---\n", prompt(name)), key=len).strip()
    return any(words in each.text for each in found)


@pytest.mark.parametrize("name", FILES)
def test_the_words_of_a_prompt_file_are_within_their_size(name: str) -> None:
    assert len(prompt(name).encode()) // 4 <= TEXTS[name]


def test_a_specialist_is_described_in_few_words() -> None:
    for specialist in specialists().values():
        assert len(specialist.prompt.encode()) // 4 <= SPECIALIST, specialist.name
        assert len(specialist.description) <= 160, specialist.name


@pytest.mark.slow
def test_the_command_prints_one_prompt_whole_or_says_which_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGIRAPH_HOME", str(tmp_path))
    shown = CliRunner().invoke(prompts, ["heartbeat"])
    assert shown.output.startswith("heartbeat: ")
    assert "[Runtime] A scheduled check." in shown.output
