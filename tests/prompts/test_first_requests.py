"""First requests: what each role is told, in how many tokens, and in which words."""

import re
from pathlib import Path

import pytest

from agiraph.cli.prompts import BOARD_IN_REPLY, REQUESTS
from agiraph.core.tools.replies.foreground import FOREGROUND
from agiraph.core.tools.toolsets import BUILT_IN
from agiraph.testing.prompts import WIRES, PromptWire, first_requests
from tests.prompts.renderings import ROLES, SMALL_WINDOW, SNAPSHOTS, kept

GOALS = {
    **{name: REQUESTS[name] for name in ("coordinator", "worker")},
    "reply": REQUESTS["reply"] + BOARD_IN_REPLY,
}
"""Tokens (bytes of the body / 4) that a first request may have; a specialist counts as a worker."""
LEAN_GOAL = REQUESTS["lean_worker"]
BANNED = re.compile(
    r"(?i:\bhand(?:ed|s)? in\b|hand out|\bland(?:s|ed|ing)?\b|further the goal|whoever|cheap hands"
    r"|\bdesk\b|\bplease\b|as an AI|getting long|\btry to\b)|CRITICAL|IMPORTANT|\bMUST\b"
)
ALL_TOOLS = {*BUILT_IN, *FOREGROUND}


@pytest.mark.slow
@pytest.mark.parametrize("wire", WIRES)
async def test_first_requests_are_within_their_goals_and_as_the_snapshots_show_them(
    tmp_path: Path, wire: PromptWire
) -> None:
    large = await first_requests(tmp_path / "large", wire=wire, roles=ROLES)
    small = await first_requests(tmp_path / "small", wire=wire, roles=ROLES, window=SMALL_WINDOW)

    assert (large.keys(), small.keys()) == (ROLES, ROLES)
    sizes = {name: request.tokens for name, request in large.items()}
    assert {n: s for n, s in sizes.items() if s > GOALS.get(n, GOALS["worker"])} == {}
    lean = {name: request.tokens for name, request in small.items()}
    assert {name: size for name, size in lean.items() if size > LEAN_GOAL} == {}
    shown = kept(wire, large, small)
    assert shown == {name: (SNAPSHOTS / name).read_text() for name in shown}, (
        "If that is meant, write the snapshots anew: python -m tests.prompts.renderings"
    )


SHOWN = sorted(SNAPSHOTS.glob("*.txt"))


@pytest.mark.parametrize("path", SHOWN, ids=[path.stem for path in SHOWN])
def test_a_prompt_names_only_tools_that_its_reader_can_call(path: Path) -> None:
    text = path.read_text()
    system = text.partition("===== system =====")[2].partition("===== user =====")[0]
    tools = text.partition("===== tools =====")[2].partition("===== system =====")[0]
    had = set(re.findall(r"^(\w+): ", tools, re.MULTILINE))
    had |= set(re.findall(r"^- (\w+) \{", system, re.MULTILINE))
    for names in re.findall(r"^More tools, .*?: (.+)\.$", system, re.MULTILINE):
        had |= set(names.split(", "))

    named = set(re.findall(r"`(\w+)`|You call (\w+) with", system))
    assert {name for pair in named for name in pair if name in ALL_TOOLS} <= had


@pytest.mark.parametrize("path", SHOWN, ids=[path.stem for path in SHOWN])
def test_a_prompt_uses_plain_words_and_has_all_its_facts(path: Path) -> None:
    system = path.read_text().partition("===== system =====")[2]

    assert BANNED.findall(system) == []
    assert re.findall(r"\{(?:ending|giver|name)\}|\bNone\b", system) == []
    assert re.findall(r"^# [^\n]*\n*(?=\n# |\Z)", system, re.MULTILINE) == []


async def test_a_specialist_of_ones_own_is_rendered_with_its_tools(tmp_path: Path) -> None:
    poet = "---\nname: poet\ndescription: Writes verse.\ntools: read_file, write_file\n---\nRhyme."
    found = await first_requests(tmp_path / "home", specialists={"poet": poet}, roles={"poet"})

    assert "\n\nRhyme.\n\n" in found["poet"].seen.system
    assert found["poet"].seen.tools == (
        "ask_human",
        "checkpoint",
        "publish",
        "read_file",
        "read_ref",
        "send_message",
        "suggest_next",
        "write_file",
    )
    assert "- poet: Writes verse." in found["coordinator"].seen.system
