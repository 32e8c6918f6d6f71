"""Model tests: the last test of a model is kept in the home and shown with the model."""

import logging
from pathlib import Path

import pytest

from agiraph.api import model_presenters
from agiraph.api.server_views import ModelTestView
from agiraph.core.home.layout import Home
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer
from agiraph.testing.model_server import Status
from tests.api.serving import serving

WRONG_KEY = Status(401, "Incorrect API key provided: sk-canary.")
NAME = "openai/gpt-5"


def result(verdict: str) -> ModelTestView:
    check = {"name": "words", "verdict": verdict, "what": "It answers.", "advice": ""}
    return ModelTestView.model_validate(
        {"model": NAME, "at": "2026-01-02T03:04:05Z", "checks": [check]}
    )


async def test_the_last_test_of_a_model_is_listed_with_it(tmp_path: Path) -> None:
    async with ModelServer([WRONG_KEY]) as model:
        keys = Keys({"openai": Account(key="sk-canary", base_url=model.openai_url)})
        async with serving(tmp_path / "home", keys=keys, model=NAME) as served:
            _, tested = await served.ask("POST", "/models/test", {"model": NAME})
            status, listed = await served.ask("GET", "/models")
    models = [one for provider in listed["providers"] for one in provider["models"]]
    assert (status, [one["last_test"] for one in models if one["name"] == NAME]) == (200, [tested])
    assert {one["name"] for one in models if one["last_test"] is not None} == {NAME}
    [check] = tested["checks"]
    assert (check["name"], check["verdict"]) == ("words", "failed")
    assert check["advice"].startswith("Check OPENAI_API_KEY: ")
    kept = b"".join(file.read_bytes() for file in (tmp_path / "home/model-tests").iterdir())
    assert b"sk-canary" not in kept


def test_a_new_test_replaces_the_one_before(tmp_path: Path) -> None:
    home = Home.open(tmp_path)
    model_presenters.keep(home, result("failed"))
    model_presenters.keep(home, result("passed"))

    assert model_presenters.kept(home) == {NAME: result("passed")}


def test_a_damaged_file_is_named_and_left_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = Home.open(tmp_path)
    assert model_presenters.kept(home) == {}
    model_presenters.keep(home, result("passed"))
    damaged = tmp_path / "model-tests" / "other.json"
    damaged.write_text("{")

    with caplog.at_level(logging.WARNING):
        assert model_presenters.kept(home) == {NAME: result("passed")}

    assert str(damaged) in caplog.text
    assert damaged.read_text() == "{"
