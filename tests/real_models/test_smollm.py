"""A real, very weak model: no crash, no endless loop, budgets hold, nothing is done that is not.

The ordinary run has one goal. `make faults` has fifty goals and chats: in windows of three sizes,
and behind a proxy that speaks for three vendors.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import Budget
from agiraph.models.catalogue import Catalogue
from agiraph.models.facts.model_facts import Fact
from agiraph.models.facts.prices import Prices
from agiraph.models.options import ModelOptions
from agiraph.models.registry import Keys, Registry
from tests.cli.shell import Shell
from tests.conftest import SweepLog
from tests.real_models.runs import (
    GOALS,
    SERVER,
    TOKENS,
    TURNS,
    Figures,
    Goal,
    Setting,
    calls_of,
    run_goal,
    words_of,
)
from tests.real_models.servers import MODEL, litellm, llama

pytestmark = pytest.mark.timeout(900)
LIMITS = Budget(turns=TURNS, tokens=TOKENS)
CHATS = ("Hello!", "What are you working on?", "Thank you.", "Please write a poem into poem.md.")
FORMS = ("as-openai", "as-anthropic", "as-gemini")
LONG_GOAL = "Shorten this list of rules. " + " ".join(
    f"Rule {number}: a person who borrows book {number} returns it within {number} days."
    for number in range(1, 61)
)


@pytest.fixture(autouse=True)
def no_internal_error(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test whose log has an error."""
    yield
    errors = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.ERROR]
    assert errors == []


@pytest.mark.slow
async def test_a_goal_with_a_real_model_ends_as_what_it_is(tmp_path: Path) -> None:
    async with llama(8_192) as server:
        clock = SystemClock()
        models = Catalogue(Registry(Keys(servers={SERVER: server}), clock), Prices(), clock)
        await models.learn(f"{SERVER}/{MODEL}")
        facts = models.facts(f"{SERVER}/{MODEL}")
        await models.close()
        assert (facts.window, facts.tools) == (Fact(8_192, "server"), Fact(False, "server"))
        setting = replace(words_of(server, 8_192), options=ModelOptions(max_output_tokens=16))
        await run_goal(tmp_path, setting, GOALS[1], Budget(turns=1, tokens=TOKENS))


@pytest.mark.long(share=0.1)
@pytest.mark.parametrize("window", [4_096, 8_192, 16_384])
async def test_goals_in_windows_of_every_size(
    tmp_path: Path, window: int, sweep_log: SweepLog
) -> None:
    figures = Figures(f"in {window:,} tokens")
    async with llama(window) as server:
        for number, goal in enumerate(GOALS):
            folder = tmp_path / str(number)
            if number % 2:
                figures.add(await run_goal(folder, calls_of(server, window), goal, LIMITS))
            else:  # with the limits that every goal has
                figures.add(await run_goal(folder, words_of(server, window), goal))
    sweep_log.append(str(figures))
    assert figures.calls


@pytest.mark.long(share=0.05)
async def test_a_thread_that_outgrows_a_small_window_is_shortened_and_goes_on(
    tmp_path: Path, sweep_log: SweepLog
) -> None:
    figures = Figures("with a long goal in 4,096 tokens")
    async with llama(4_096) as server:
        goal = Goal(LONG_GOAL, lambda _, __: False)
        ended = await run_goal(tmp_path, calls_of(server, 4_096), goal, Budget(turns=8))
        figures.add(ended)
    sweep_log.append(str(figures))
    purposes = {line.purpose for line in ended.bill}
    assert "compaction" in purposes or ended.asked


@pytest.mark.long(share=0.05)
async def test_a_newcomer_with_a_server_needs_no_key_and_is_told_what_to_do(tmp_path: Path) -> None:
    agiraph, model = Shell(tmp_path / "home"), f"text/{SERVER}/{MODEL}"
    agiraph.home.mkdir(mode=0o700)
    async with llama(4_096) as server:
        (agiraph.home / "agiraph.toml").write_text(
            f'model = "{model}"\n[servers.{SERVER}]\nbase_url = "{server.base_url}"\n'
        )
        listed = await agiraph("models")
        doctor = await agiraph("doctor")
        refused = await agiraph("run", "Say hello", "--model", f"{SERVER}/{MODEL}")
        run = await agiraph("run", "Write a haiku into haiku.md", "--turns", "2")
    [row] = [line.split() for line in listed.out.splitlines() if f" {SERVER}/{MODEL} " in line]
    assert row == [f"{SERVER}/{MODEL}", "4,096s", "no", "no", "0", "0"]
    narrow = "Its window of 4,096 tokens is small for an agent's work: start llama-server with a"
    assert (doctor.code, narrow in " ".join(doctor.out.split())) == (0, True)
    assert (refused.code, f"Use it as '{model}'" in " ".join(refused.err.split())) == (1, True)
    assert (run.code, "its turns are used up" in " ".join(run.out.split())) == (1, True)


@pytest.mark.long(share=0.1)
@pytest.mark.parametrize("form", FORMS)
async def test_goals_behind_a_proxy_in_three_vendors_forms(
    tmp_path: Path, form: str, sweep_log: SweepLog
) -> None:
    figures = Figures(f"behind LiteLLM {form}")
    async with llama(4_096) as server, litellm(server, tmp_path) as proxy:
        for number in range(4):
            goal, folder = GOALS[2 * number + 1], tmp_path / str(number)
            # In the vendor's own form of calls, and as text.
            model = f"text/{form}/{MODEL}" if number == 0 else f"{form}/{MODEL}"
            # LiteLLM passes no counts on in Gemini's streams.
            is_counted = form != "as-gemini"
            setting = Setting(servers=proxy, model=model, window=4_096, is_counted=is_counted)
            figures.add(await run_goal(folder, setting, goal, LIMITS))
    sweep_log.append(str(figures))


@pytest.mark.long(share=0.05)
@pytest.mark.parametrize("window", [4_096, 8_192])
async def test_a_conversation_with_a_real_model_is_answered(
    tmp_path: Path, window: int, sweep_log: SweepLog
) -> None:
    async with llama(window) as server, words_of(server, window).world(tmp_path) as world:
        founded = await world.found(
            "Talk.", model=f"text/{SERVER}/{MODEL}", budget=Budget(turns=1, tokens=TOKENS)
        )
        await world.settle()
        for text in CHATS:
            await world.chat(founded.coordinator.id, text)
            await world.settle()
        heard = await world.conversation(founded.coordinator)
        board = await world.board(founded.team.id)
    asked = [m for m in heard if m.text in CHATS]
    answered = {m.in_reply_to: m.text for m in heard if m.sender == founded.coordinator.id}
    assert [m.text for m in asked] == list(CHATS)
    assert all(answered.get(m.id, "").strip() for m in asked)
    assert all(node.status.is_final or node.waiting_reason for node in board)
    sweep_log.append(f"{len(asked)} messages to SmolLM2 in {window:,} tokens: all answered")
