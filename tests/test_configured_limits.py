"""The daily limit and the rate limits in the settings; anything that is no limit is refused."""

from pathlib import Path

import pytest

from agiraph import config
from agiraph.config import Setting
from agiraph.core.domain.errors import Misconfigured
from agiraph.models.http.rate_limits import Rate


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


@pytest.mark.parametrize(
    ("written", "environ", "said"),
    [
        ("[limits]\nusd_per_day = -1", {}, r"limits.usd_per_day \S+ must be a number of dollars"),
        ('[limits]\nusd_per_day = "50"', {}, r"limits.usd_per_day \S+ must be a number of dollars"),
        ("[limits]\nusd_per_day = true", {}, r"limits.usd_per_day \S+ must be a number of dollars"),
        ("[limits]\nusd_per_day = nan", {}, r"limits.usd_per_day \S+ must be a number of dollars"),
        ("[limits]\nusd_per_week = 1", {}, "there are usd_per_day"),
        ("limits = 3", {}, r"limits: It must be a table. Write \[limits\] with usd"),
        ("", {"AGIRAPH_USD_PER_DAY": "much"}, "AGIRAPH_USD_PER_DAY: .* 'much' must be a number"),
    ],
)
def test_a_wrong_daily_limit_is_refused_with_what_to_write(
    tmp_path: Path, written: str, environ: dict[str, str], said: str
) -> None:
    with pytest.raises(Misconfigured, match=said):
        load(tmp_path, written, **environ)


def test_rate_limits_are_read_by_provider_and_shown(tmp_path: Path) -> None:
    written = "[rate_limits.openai]\nrequests_per_minute = 30\ntokens_per_minute = 90000"
    settings = load(tmp_path, written)
    assert settings.keys.rates == {"openai": Rate(requests_per_minute=30, tokens_per_minute=90000)}
    assert settings.shown["rate_limits.openai"] == Setting(
        value="30 requests a minute, 90000 tokens a minute", origin="agiraph.toml"
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("rate_limits = 3", "rate_limits are tables"),
        ("[rate_limits]\nopenai = 3", r"\[rate_limits.openai\]: It must be a table"),
        (
            "[rate_limits.openai]\nrequests = 3",
            r"\[rate_limits.openai\] requests: There is no such",
        ),
        ("[rate_limits.openai]\nrequests_per_minute = 0", "requests_per_minute 0 must be a number"),
        ('[rate_limits.openai]\ntokens_per_minute = "9"', "tokens_per_minute '9' must be a number"),
    ],
)
def test_wrong_rate_limits_are_refused_with_what_to_write(
    tmp_path: Path, written: str, said: str
) -> None:
    with pytest.raises(Misconfigured, match=said):
        load(tmp_path, written)
