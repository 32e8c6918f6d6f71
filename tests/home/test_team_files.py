"""Team files: what a deletion removes, however much there is and whatever its modes are."""

import os
from pathlib import Path

import pytest
from tests.home.ordinary_user import run_as_ordinary

from agiraph.core.domain.ids import TeamId
from agiraph.core.home.layout import Home
from agiraph.core.home.safe_folder import MOST_ENTRIES
from agiraph.core.runtime.background import upkeep


@pytest.mark.slow
def test_the_spools_of_a_team_are_found_among_very_many(tmp_path: Path) -> None:
    home = Home.open(tmp_path)
    home.spool("thread_a-1")
    for number in range(MOST_ENTRIES):
        (tmp_path / "spool" / f"thread_b-{number}").mkdir()
    upkeep.remove_files(home, TeamId("team_a"), [("thread_a", ["1"])])
    assert len(list((tmp_path / "spool").glob("thread_b-*"))) == MOST_ENTRIES
    assert not (tmp_path / "spool" / "thread_a-1").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run Python as another user")
def test_folders_that_their_owner_may_not_change_are_exported_and_removed() -> None:
    assert run_as_ordinary("tests.home.read_only_folders") == {
        "left_out": ["closed", "secret.md"],
        "left": ["outside"],
        "mode of what a link leads to": "0o555",
    }
