"""Prompt size: `prompt` of a model chooses the full or the lean prompt; else its window does."""

from pathlib import Path

import pytest

from agiraph import config
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.runtime.prompts.prompt import LEAN_WINDOW
from agiraph.models.catalogue import Catalogue
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.options import ModelOptions, PromptSize
from agiraph.models.registry import Account, Keys, Registry
from agiraph.testing import ManualClock, ModelServer, World, call, says

SMALL, LARGE = LEAN_WINDOW - 1, LEAN_WINDOW
CASES: list[tuple[PromptSize, int, bool]] = [
    ("auto", SMALL, True),
    ("auto", LARGE, False),
    ("full", SMALL, False),
    ("lean", LARGE, True),
]


@pytest.mark.parametrize(("size", "window", "is_lean"), CASES)
async def test_the_setting_comes_before_the_window(
    tmp_path: Path, size: PromptSize, window: int, is_lean: bool
) -> None:
    async with ModelServer([says(call("finish", summary="done"))] * 3) as server:
        keys = Keys(
            {"openai": Account(key="k", base_url=server.openai_url)},
            options={"openai/m": ModelOptions(prompt=size)},
        )
        prices = Prices({"openai/m": Terms(window=window)})
        async with World(tmp_path / "home", keys=keys, prices=prices, easy_endings=True) as world:
            await world.found("Say hello", model="openai/m")
            await world.settle()

    first = server.requests[0]
    assert ("More tools, " not in first.system) is is_lean
    assert (len(first.raw) // 4 < 1_600) is is_lean


def test_a_chain_is_lean_if_one_of_its_models_wants_it() -> None:
    options = {"openai/a": ModelOptions(prompt="lean"), "openai/b": ModelOptions(prompt="full")}
    windows = {"openai/b": Terms(window=4_096), "openai/c": Terms(window=200_000)}
    clock = ManualClock()
    registry = Registry(Keys({"openai": Account(key="k")}, options=options), clock)
    models = Catalogue(registry, Prices(windows), clock)

    names = ["openai/a", "openai/b", "openai/b, openai/c", "openai/c, openai/a", "text/openai/a"]
    wanted = [models.wants_lean_prompt(name, below=LEAN_WINDOW) for name in names]
    assert wanted == [True, False, False, True, True]


def test_the_setting_is_read_and_a_wrong_one_refused(tmp_path: Path) -> None:
    def load(value: str) -> Keys:
        (tmp_path / config.FILE).write_text(f'[models."ollama/m"]\nprompt = {value}\n')
        return config.load({"AGIRAPH_HOME": str(tmp_path)}).keys

    assert load('"lean"').options == {"ollama/m": ModelOptions(prompt="lean")}
    with pytest.raises(Misconfigured, match="prompt 'small' is not one of auto, full, lean"):
        load('"small"')
