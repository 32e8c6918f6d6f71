"""File versions: what a file held is kept whole, whatever happens while it is kept."""

from pathlib import Path

import pytest

from agiraph import faultpoints
from agiraph.core.home import file_versions
from agiraph.core.home.safe_folder import Folder


class Cut(BaseException):
    """The process ends here."""


def test_a_crash_while_a_version_is_kept_leaves_no_half_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(name: str) -> None:
        if name == "fx:in:write":
            raise Cut

    with Folder.open(tmp_path) as team:
        team.write("PLAN.md", b"First plan")
        with monkeypatch.context() as patched:
            patched.setattr(faultpoints, "armed", cut)
            with pytest.raises(Cut):
                file_versions.keep(team, "PLAN.md", b"First plan", author="ada", is_labelled=True)
        assert file_versions.versions(team, "PLAN.md") == []


def test_an_empty_file_in_place_of_a_version_is_not_taken_for_it(tmp_path: Path) -> None:
    with Folder.open(tmp_path) as team:
        team.write("PLAN.md", b"First plan")
        file_versions.keep(team, "PLAN.md", b"First plan", author="ada", is_labelled=True)
        [half] = (tmp_path / "history" / "versions").glob("*/*")
        half.write_bytes(b"")
        file_versions.keep(team, "PLAN.md", b"First plan", author="ada", is_labelled=True)
        newest = file_versions.versions(team, "PLAN.md")[0]
        assert file_versions.read(team, "PLAN.md", newest.id) == b"First plan"
