"""Window use: the parts of what a model is shown add up to the tokens that compaction counts."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agiraph.core.domain.chat import ToolCall, Transcript, Turn
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.window_use import (
    OWN_MEMORY,
    STATE,
    TEAM_MEMORY,
    fixed_tokens,
    window_parts,
)
from agiraph.core.domain.work import Usage

SYSTEM = "\n\n".join(
    (
        "x" * 400,
        f"# {TEAM_MEMORY}\n\n# Memory\n\n{'m' * 160}",
        f"# {OWN_MEMORY}\n\n{'n' * 160}",
        f"# {STATE}\n\n{'s' * 200}",
    )
)


def turn(role: Any, text: str = "", **more: Any) -> Turn:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    return Turn(thread_id=ThreadId("t_1"), seq=1, node_id=None, role=role, text=text, at=at, **more)


def work(**usage: Any) -> Transcript:
    call = ToolCall(id="c1", name="read_file", arguments={"path": "beans.md"})
    return Transcript(
        (
            turn("system", SYSTEM, ref="system"),
            turn("user", "t" * 400, ref="assignment"),
            turn("assistant", "a" * 80, calls=(call,), usage=Usage(**usage)),
            turn("tool", "r" * 4000, ref="c1"),
        )
    )


def test_parts_add_up_to_what_compaction_counts_and_tools_are_what_else_was_counted() -> None:
    counted = work(input_tokens=2000, output_tokens=30)
    sizes = {each.part: each.tokens for each in window_parts(counted)}
    assert sum(sizes.values()) == counted.next_tokens == 2000 + 30 + 1000
    # The vendor counted 2,000: about 260 are the system prompt and 100 the task.
    assert fixed_tokens(counted) == 2000
    assert sizes["tools"] == pytest.approx(1640, rel=0.05)
    assert sizes["results"] == pytest.approx(1000, rel=0.05)
    # A heading inside of a file does not end its section.
    assert sizes["memory"] == pytest.approx(105, rel=0.1)
    assert sizes["instructions"] == pytest.approx(160, rel=0.1)


def test_without_a_count_of_the_vendor_the_tools_are_not_known() -> None:
    sizes = {each.part: each.tokens for each in window_parts(work())}
    assert "tools" not in sizes
    assert sum(sizes.values()) == work().next_tokens


def test_after_a_cut_only_what_is_still_shown_counts() -> None:
    transcript = work(input_tokens=2000, output_tokens=30)
    before = transcript.next_tokens
    transcript.add(turn("user", "What was done.", is_summary=True))
    sizes = {each.part: each.tokens for each in window_parts(transcript)}
    assert sum(sizes.values()) == transcript.next_tokens < before
    assert "results" not in sizes


def test_an_empty_thread_fills_nothing() -> None:
    assert window_parts(Transcript()) == []
