"""Stored keys: entered in the web UI, read at each start, and readable by their owner alone."""

from pathlib import Path

import pytest

from agiraph import config
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.home import stored_keys
from agiraph.core.home.layout import Home
from agiraph.core.home.stored_keys import StoredKeys
from agiraph.features.backup import archive
from agiraph.features.backup.commands import is_setting

KEY = "sk-proj-0123456789abcdef"
STORED = StoredKeys(keys={"OPENAI_API_KEY": KEY}, model="openai/good")


def load(home: Path, **environ: str) -> config.Settings:
    return config.load({"AGIRAPH_HOME": str(home), **environ})


def test_the_settings_take_stored_keys_and_the_environment_counts_more(tmp_path: Path) -> None:
    stored_keys.write(Home.open(tmp_path), STORED)
    found = load(tmp_path)
    assert (found.keys.accounts["openai"].key, found.model) == (KEY, "openai/good")
    shown = found.shown["OPENAI_API_KEY"]
    assert (shown.value, shown.origin) == ("set", "keys.json")
    found = load(tmp_path, OPENAI_API_KEY="sk-other-0123", AGIRAPH_MODEL="openai/other")
    assert (found.keys.accounts["openai"].key, found.model) == ("sk-other-0123", "openai/other")
    (tmp_path / "agiraph.toml").write_text('model = "openai/third"')
    assert load(tmp_path).model == "openai/third"
    assert KEY not in repr(found) + repr(STORED)


def test_a_file_that_others_can_read_or_that_is_damaged_is_refused(tmp_path: Path) -> None:
    stored_keys.write(Home.open(tmp_path), STORED)
    file = tmp_path / "keys.json"
    file.chmod(0o644)
    with pytest.raises(Misconfigured, match="chmod 600"):
        load(tmp_path)
    file.chmod(0o600)
    file.write_text(f'{{"keys": "{KEY}"}}')
    with pytest.raises(Misconfigured) as damaged:
        load(tmp_path)
    assert ("damaged" in str(damaged.value), KEY in str(damaged.value)) == (True, False)


def test_backups_leave_the_keys_out_and_a_restore_does_not_take_them() -> None:
    assert ("keys.json" in archive.LEFT_OUT, is_setting("keys.json")) == (True, True)
