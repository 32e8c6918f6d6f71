"""The daily limit and the rate limits in the settings; anything that is no limit is refused."""

from pathlib import Path

import pytest

from agiraph import config
from agiraph.config import Setting
from agiraph.core.domain.errors import Misconfigured
from agiraph.models.http.rate_limits import Rate
from tests.wording import Wording, refusals


def load(tmp_path: Path, written: str = "", **environ: str) -> config.Settings:
    (tmp_path / "agiraph.toml").write_text(written)
    return config.load({"AGIRAPH_HOME": str(tmp_path), **environ})


@pytest.mark.parametrize(
    ("written", "environ", "usd", "shown"),
    [
        ("", {}, 50.0, ("50", "default")),
        ("[limits]\nusd_per_day = 12.5", {}, 12.5, ("12.5", "agiraph.toml")),
        ("[limits]\nusd_per_day = 0", {}, 0.0, ("0", "agiraph.toml")),
        ('[limits]\nusd_per_day = "none"', {}, None, ("none", "agiraph.toml")),
        ("[limits]\nusd_per_day = 3", {"AGIRAPH_USD_PER_DAY": "7"}, 7.0, ("7", "environment")),
        ("", {"AGIRAPH_USD_PER_DAY": "None"}, None, ("none", "environment")),
        ("", {"AGIRAPH_USD_PER_DAY": ""}, 50.0, ("50", "default")),
    ],
)
def test_the_daily_limit_comes_from_the_environment_then_the_file_then_the_default(
    tmp_path: Path, written: str, environ: dict[str, str], usd: float | None, shown: tuple[str, str]
) -> None:
    settings = load(tmp_path, written, **environ)
    value, origin = shown
    assert settings.usd_per_day == usd
    assert settings.shown["limits.usd_per_day"] == Setting(value=value, origin=origin)


WRONG_DAYS = [
    ("[limits]\nusd_per_day = -1", {}),
    ('[limits]\nusd_per_day = "50"', {}),
    ("[limits]\nusd_per_day = true", {}),
    ("[limits]\nusd_per_day = nan", {}),
    ("[limits]\nusd_per_week = 1", {}),
    ("limits = 3", {}),
    ("", {"AGIRAPH_USD_PER_DAY": "much"}),
]


def test_a_wrong_daily_limit_is_refused_with_what_to_write(
    tmp_path: Path, wording: Wording
) -> None:
    wording(
        refusals(WRONG_DAYS, lambda one, environ: load(tmp_path, one, **environ), Misconfigured)
    )


def test_rate_limits_are_read_by_provider_and_shown(tmp_path: Path) -> None:
    written = "[rate_limits.openai]\nrequests_per_minute = 30\ntokens_per_minute = 90000"
    settings = load(tmp_path, written)
    assert settings.keys.rates == {"openai": Rate(requests_per_minute=30, tokens_per_minute=90000)}
    assert settings.shown["rate_limits.openai"] == Setting(
        value="30 requests a minute, 90000 tokens a minute", origin="agiraph.toml"
    )


WRONG_RATES = [
    "rate_limits = 3",
    "[rate_limits]\nopenai = 3",
    "[rate_limits.openai]\nrequests = 3",
    "[rate_limits.openai]\nrequests_per_minute = 0",
    '[rate_limits.openai]\ntokens_per_minute = "9"',
]


def test_wrong_rate_limits_are_refused_with_what_to_write(tmp_path: Path, wording: Wording) -> None:
    wording(refusals(WRONG_RATES, lambda one: load(tmp_path, one), Misconfigured))
