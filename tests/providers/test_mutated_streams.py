"""Mutated streams: whatever a server does to a stream, no reader crashes and no call is half."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import ModelError
from agiraph.models.base import Model, Reply
from agiraph.models.http.client import HttpClient
from agiraph.models.wires import call_pieces, remote_model
from agiraph.models.wires.anthropic import AnthropicModel
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.models.wires.gemini import GeminiModel
from agiraph.testing import ModelServer
from agiraph.testing.model_server import Garbage
from tests.conftest import SweepLog
from tests.providers.stream_mutations import Mutated, mutate
from tests.providers.streams import WIRES, Recorded, outcome, recorded, torn, violations
from tests.providers.transcripts import request
from tests.time_box import TimeBox

OVER_SOCKETS = 150
"""Mutated streams of each wire that go over a connection."""
EACH = 5_000
"""Mutated streams of each wire in `make test`."""
SEED = 11


def sweep(
    name: str, rng: random.Random, count: int, streams: list[Recorded]
) -> tuple[list[str], Counter[str]]:
    """Read so many mutated streams; return what was wrong, and how the streams ended."""
    wrong, ends = list[str](), Counter[str]()
    for _ in range(count):
        stream = rng.choice(streams)
        mutated = mutate(stream, rng)
        try:
            ended = outcome(name, mutated.body, torn(mutated.body, rng))
        except Exception as error:
            wrong.append(f"{mutated.name}: {error!r}: {mutated.body[:2000]!r}")
            continue
        ends[type(ended).__name__] += 1
        if isinstance(ended, Reply):
            wrong += described(mutated, violations(stream, ended, mutated.events))
    return wrong, ends


def described(mutated: Mutated, found: list[str]) -> list[str]:
    return [f"{mutated.name}: {each}: {mutated.body[:2000]!r}" for each in found]


@pytest.mark.slow
@pytest.mark.parametrize("name", WIRES)
def test_a_mutated_stream_gives_whole_calls_or_an_error(name: str, sweep_log: SweepLog) -> None:
    wrong, ends = sweep(name, random.Random(SEED), EACH, recorded(name))
    sweep_log.append(f"{EACH} mutated streams of {name}, seed {SEED}: {dict(ends)}")
    assert wrong[:3] == []
    # The mutations must leave good replies and break others, or they would show nothing.
    assert ends["Reply"] > EACH // 10
    assert sum(ends.values()) - ends["Reply"] > EACH // 10


@pytest.mark.long(share=0.01)
@pytest.mark.parametrize("name", WIRES)
def test_many_mutated_streams_give_whole_calls_or_an_error(
    name: str, time_box: TimeBox, seed: int, sweep_log: SweepLog
) -> None:
    rng, count = random.Random(seed), 0
    while count < 20_000 or time_box.is_open:
        wrong, _ = sweep(name, rng, 5_000, recorded(name))
        assert wrong[:3] == []
        count += 5_000
    sweep_log.append(f"{count} mutated streams of {name}, seed {seed}")


def test_an_unchanged_stream_gives_the_recorded_calls() -> None:
    for name in WIRES:
        assert [len(stream.calls) for stream in recorded(name)] == [0, 2, 3, 3, 1, 0, 0, 0]


@pytest.mark.parametrize("name", ["chat", "anthropic", "gemini"])
async def test_a_mutated_stream_over_a_socket_ends_as_it_does_without(
    name: str, http: HttpClient
) -> None:
    streams, rng = recorded(name), random.Random(SEED)
    chosen = [mutate(rng.choice(streams), rng) for _ in range(OVER_SOCKETS)]
    ends: list[Reply | ModelError] = []
    async with ModelServer([Garbage(mutated.body) for mutated in chosen]) as server:
        keys: dict[str, Any] = {"name": "house/m", "model": "m", "key": "", "http": http}
        model: Model = {
            "chat": OpenAIModel(base_url=server.openai_url, **keys),
            "anthropic": AnthropicModel(base_url=server.anthropic_url, **keys),
            "gemini": GeminiModel(base_url=server.gemini_url, **keys),
        }[name]
        for _ in chosen:
            try:
                ends.append(await model.reply(request()))
            except ModelError as error:
                ends.append(error)
    directly = [outcome(name, mutated.body) for mutated in chosen]
    assert [_told(end) for end in ends] == [_told(end) for end in directly]


def _told(end: Reply | ModelError) -> tuple[object, ...]:
    return (end.text, end.calls) if isinstance(end, Reply) else (type(end), str(end))


# ---- planted faults ------------------------------------------------------------------------


def _repairs_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that closes what the stream left open."""
    parse = call_pieces._parsed

    def repaired(text: str) -> object:
        value = parse(text)
        for end in ('"}', "}", '": null}') if value is False else ():
            if value is False:
                value = parse(text + end)
        return value

    monkeypatch.setattr(call_pieces, "_parsed", repaired)


def _needs_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes a stream for whole wherever it ends."""
    monkeypatch.setattr(remote_model, "CUT_OFF", "")

    class Never(Exception):
        pass

    class Quiet(ModelError):
        def __new__(cls, *_: object) -> "Quiet":
            raise Never

    taken = remote_model._read_stream

    async def lenient(*given: object) -> None:
        monkeypatch.setattr(remote_model, "ModelUnavailable", Quiet)
        try:
            await taken(*given)  # type: ignore[arg-type]
        except Never:
            return

    monkeypatch.setattr(remote_model, "_read_stream", lenient)


def _drops_nameless_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that makes the named calls whatever came beside them."""

    def build(self: call_pieces.CallPieces, *, is_truncated: bool) -> list[ToolCall]:
        return [made for call in self._calls if call.name for made in call.build()]

    monkeypatch.setattr(call_pieces.CallPieces, "build", build)


def _ignores_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that takes every piece for one of the last call."""
    monkeypatch.setattr(call_pieces, "_position", lambda _: None)
    monkeypatch.setattr(call_pieces, "_is_another", lambda *_: False)


def _crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that does not expect a field of another type."""
    monkeypatch.setattr(remote_model, "UNREADABLE", (KeyError, ValueError))


PLANTED: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "repairs JSON": ("chat", _repairs_json),
    "repairs JSON of another wire": ("anthropic", _repairs_json),
    "needs no end": ("gemini", _needs_no_end),
    "ignores the index": ("chat", _ignores_the_index),
    "drops nameless pieces": ("chat", _drops_nameless_pieces),
    "crashes": ("gemini", _crashes),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, arm = PLANTED[fault]
    streams, rng = recorded(name), random.Random(SEED)
    arm(monkeypatch)
    assert any(sweep(name, rng, 100, streams)[0] for _ in range(EACH // 100))
