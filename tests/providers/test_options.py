"""Options of models and servers: what agiraph.toml may add to a request."""

from pathlib import Path

from agiraph import config
from agiraph.core.domain.errors import Misconfigured
from agiraph.models.facts.prices import Terms
from agiraph.models.options import ModelOptions, merged
from agiraph.models.servers import Server
from tests.wording import Wording, refusals

EVERYTHING = """
[models."openai/gpt-6"]
window = 5000
effort = "high"
temperature = 0.5
max_output_tokens = 4000
headers = { "X-Team" = "red", "x-gateway" = "env:GATEWAY_KEY" }
body = { service_tier = "flex", reasoning = { summary = "auto" } }
"""


def load(tmp_path: Path, written: str, **environ: str) -> config.Settings:
    (tmp_path / "agiraph.toml").write_text(written)
    return config.load({"AGIRAPH_HOME": str(tmp_path), **environ})


def test_options_of_a_model_are_read_beside_its_terms(tmp_path: Path) -> None:
    settings = load(tmp_path, EVERYTHING, GATEWAY_KEY="gk-123")

    assert settings.keys.options == {
        "openai/gpt-6": ModelOptions(
            effort="high",
            temperature=0.5,
            max_output_tokens=4000,
            headers={"x-team": "red", "x-gateway": "gk-123"},
            body={"service_tier": "flex", "reasoning": {"summary": "auto"}},
        )
    }
    assert settings.prices.terms == {"openai/gpt-6": Terms(window=5000)}
    assert "gk-123" not in repr(settings) + str(settings.shown)


def test_a_server_has_a_wire_and_headers(tmp_path: Path) -> None:
    written = '[servers.house]\nbase_url = "http://x/v1"\nwire = "responses"\n'
    settings = load(tmp_path, written + 'headers = { x-a = "1" }')

    assert settings.keys.servers == {
        "house": Server(base_url="http://x/v1", wire="responses", headers={"x-a": "1"})
    }


MODEL = '[models."a/b"]\n'


WRONG_OPTIONS = [
    MODEL + 'effort = "huge"',
    MODEL + "effort = 3",
    MODEL + "temperature = 3",
    MODEL + "temperature = true",
    MODEL + "max_output_tokens = 0",
    MODEL + 'headers = "x"',
    MODEL + 'headers = { "a b" = "1" }',
    MODEL + 'headers = { Authorization = "1" }',
    MODEL + "headers = { x = 1 }",
    MODEL + 'headers = { x = "a\\nb" }',
    MODEL + 'headers = { x = "env:NOT_SET" }',
    MODEL + "body = 3",
    MODEL + "body = { stream = false, model = 1 }",
    MODEL + "efort = 1",
    '[servers.x]\nbase_url = "http://x"\nwire = "soap"',
]


def test_wrong_options_are_refused(tmp_path: Path, wording: Wording) -> None:
    wording(refusals(WRONG_OPTIONS, lambda one: load(tmp_path, one), Misconfigured))


def test_extra_fields_are_merged_into_objects_and_replace_other_values() -> None:
    settings = {"a": 1, "deep": {"kept": 1, "replaced": 1}}
    extra = {"b": 2, "deep": {"replaced": 2, "added": 2}}

    assert merged(settings, extra) == {
        "a": 1,
        "b": 2,
        "deep": {"kept": 1, "replaced": 2, "added": 2},
    }
    assert settings == {"a": 1, "deep": {"kept": 1, "replaced": 1}}


def test_a_role_has_an_effort(tmp_path: Path) -> None:
    written = '[roles.worker]\neffort = "low"\n[roles.coordinator]\neffort = "max"\n[roles.tester]'
    assert load(tmp_path, written).efforts == {"worker": "low", "coordinator": "max"}


WRONG_ROLES = [
    "roles = 3",
    "[roles]\nworker = 3",
    '[roles.worker]\nmodel = "x"',
    '[roles.worker]\neffort = "x"',
]


def test_a_wrong_role_is_refused(tmp_path: Path, wording: Wording) -> None:
    wording(refusals(WRONG_ROLES, lambda one: load(tmp_path, one), Misconfigured))
