"""Prefixes: each request of a thread begins with the one before it, also after a restart."""

from pathlib import Path

import pytest
from bench import prefixes

from agiraph.testing.script import Seen

ENOUGH = 0.99


@pytest.mark.slow
@pytest.mark.parametrize("model", prefixes.MODELS.values(), ids=prefixes.MODELS)
async def test_each_request_repeats_the_one_before_it_until_a_summary(
    tmp_path: Path, model: str
) -> None:
    found = await prefixes.run(tmp_path / "home", model, turns=24, window=8000)

    assert found.requests > 24
    assert (found.summaries >= 1, found.fresh) == (True, found.summaries)
    assert found.lowest >= ENOUGH


@pytest.mark.slow
async def test_a_thread_with_tools_on_demand_keeps_its_prefix_through_restarts(
    tmp_path: Path,
) -> None:
    found = await prefixes.run(tmp_path / "home", "openai/test", turns=24, window=128_000)

    assert (found.summaries, found.fresh) == (0, 0)
    assert found.lowest >= ENOUGH


def seen(raw: bytes) -> Seen:
    return Seen(
        wire="openai", model="m", system="s", messages=(), tools=(), stream=True, headers={},
        body={}, raw=raw, index=0,
    )  # fmt: skip


def test_a_changed_beginning_and_a_changed_turn_are_found() -> None:
    first = b'{"messages":[' + b"a" * 996 + b'],"n":1}'
    longer = b'{"messages":[' + b"a" * 996 + b',b],"n":2}'
    changed = b'{"messages":[' + b"a" * 960 + b"c" * 40 + b',b],"n":2}'

    same = prefixes.compare([seen(first), seen(longer)], 0)
    worse = prefixes.compare([seen(first), seen(changed)], 0)
    anew = prefixes.compare([seen(first), seen(b"{" + longer)], 0)

    assert (same.shares, same.fresh) == ([1.0], 0)
    assert 0.95 < worse.lowest < 0.97
    assert (anew.shares, anew.fresh) == ([], 1)
