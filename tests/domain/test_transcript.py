"""A thread in memory: the tokens of its next request, counted as its turns come."""

from datetime import UTC, datetime
from typing import Any

from agiraph.core.domain.chat import LONGEST_SENT, Role, ToolCall, Transcript, Turn
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.work import Usage


def turn(role: Role, text: str = "", **more: Any) -> Turn:
    thread, at = ThreadId("thread_1"), datetime(2026, 1, 1, tzinfo=UTC)
    return Turn(thread_id=thread, seq=1, node_id=None, role=role, text=text, at=at, **more)


def counted(tokens: int, *calls: ToolCall) -> Turn:
    usage = Usage(input_tokens=tokens - 10, output_tokens=10)
    return turn("assistant", "x" * 1_000, usage=usage, calls=calls)


def test_before_a_provider_has_counted_four_bytes_are_a_token() -> None:
    transcript = Transcript([turn("system", "s" * 400), turn("user", "ä" * 200)])
    assert transcript.next_tokens == 200


def test_what_the_provider_has_counted_is_not_estimated() -> None:
    transcript = Transcript([turn("system", "s" * 400), turn("user", "u" * 4_000), counted(70)])
    assert transcript.next_tokens == 70
    transcript.add(turn("tool", "t" * 80))
    assert transcript.next_tokens == 90
    transcript.add(counted(95))
    assert transcript.next_tokens == 95


def test_what_a_later_request_leaves_out_of_a_long_call_is_taken_off() -> None:
    call = ToolCall(id="1", name="write_file", arguments={"content": "c" * 4 * LONGEST_SENT})
    transcript = Transcript([turn("user", "u"), counted(100_000, call)])
    left_out = len(str(call.arguments)) - len(str(call.as_sent.arguments))
    assert transcript.next_tokens == 100_000 - left_out // 4 - (left_out % 4 > 0)


def test_after_a_summary_only_the_prompt_and_what_follows_count() -> None:
    transcript = Transcript([turn("system", "s" * 400), turn("user", "u" * 4_000), counted(5_000)])
    transcript.add(turn("user", "y" * 100, is_summary=True))
    assert transcript.next_tokens == 125
    transcript.add(counted(140))
    assert transcript.next_tokens == 140
