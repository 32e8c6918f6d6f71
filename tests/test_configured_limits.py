"""The daily limit in the settings: a number of dollars, or none; anything else is refused."""

from pathlib import Path

import pytest

from agiraph import config
from agiraph.config import Setting
from agiraph.domain.errors import Misconfigured


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
        ("[limits]\nusd_per_day = -1", {}, "limits.usd_per_day must be a number of dollars"),
        ('[limits]\nusd_per_day = "50"', {}, "limits.usd_per_day must be a number of dollars"),
        ("[limits]\nusd_per_day = true", {}, "limits.usd_per_day must be a number of dollars"),
        ("[limits]\nusd_per_day = nan", {}, "limits.usd_per_day must be a number of dollars"),
        ("[limits]\nusd_per_week = 1", {}, "it knows: usd_per_day"),
        ("limits = 3", {}, r"\[limits\] is a table"),
        ("", {"AGIRAPH_USD_PER_DAY": "much"}, "AGIRAPH_USD_PER_DAY must be a number of dollars"),
    ],
)
def test_a_wrong_daily_limit_is_refused_with_what_to_write(
    tmp_path: Path, written: str, environ: dict[str, str], said: str
) -> None:
    with pytest.raises(Misconfigured, match=said):
        load(tmp_path, written, **environ)
