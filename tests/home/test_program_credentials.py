"""Program credentials: a program gets the person's sign-in, and only a renewed one comes back."""

import json
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.errors import OutOfScope
from agiraph.sandbox import credentials

SIGNED_IN: dict[str, Any] = {
    "claudeAiOauth": {"accessToken": "old", "refreshToken": "r1", "expiresAt": 1, "plan": "max"},
    "account": "ada",
}
RENEWED: dict[str, Any] = {
    "claudeAiOauth": {"accessToken": "new", "refreshToken": "r2", "expiresAt": 9, "plan": "max"},
    "account": "ada",
}


@pytest.fixture
def person(tmp_path: Path) -> Path:
    home = tmp_path / "person"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / ".credentials.json").write_text(json.dumps(SIGNED_IN))
    (home / ".claude" / ".credentials.json").chmod(0o600)
    (home / ".claude.json").write_text("{}")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("key")
    return home


def test_a_program_gets_its_sign_in_and_nothing_else(person: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    lent = credentials.lend("claude", person, home)
    assert [one.own.name for one in lent] == [".credentials.json"]
    files = sorted(str(f.relative_to(home)) for f in home.rglob("*") if f.is_file())
    assert files == [".claude.json", ".claude/.credentials.json"]
    assert (home / ".claude" / ".credentials.json").stat().st_mode & 0o777 == 0o600
    assert credentials.lend("make", person, home) == []


def test_a_person_without_settings_lends_the_defaults_of_the_preset(tmp_path: Path) -> None:
    person, home = tmp_path / "person", tmp_path / "home"
    assert credentials.lend("codex", person, home) == []
    assert "plugins = false" in (home / ".codex" / "config.toml").read_text()
    (person / ".codex").mkdir(parents=True)
    (person / ".codex" / "config.toml").write_text("model = 'mine'\n")
    assert credentials.lend("codex", person, home) == []
    assert (home / ".codex" / "config.toml").read_text() == "model = 'mine'\n"


def test_a_renewed_sign_in_comes_back(person: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    lent = credentials.lend("claude", person, home)
    assert credentials.take_back(lent) == []
    (home / ".claude" / ".credentials.json").write_text(json.dumps(RENEWED))
    assert credentials.take_back(lent) == [".credentials.json"]
    kept = person / ".claude" / ".credentials.json"
    assert json.loads(kept.read_text()) == RENEWED
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(RENEWED | {"account": "mallory"}),
        json.dumps(RENEWED | {"more": 1}),
        json.dumps({"account": "ada"}),
        json.dumps(RENEWED | {"claudeAiOauth": {**RENEWED["claudeAiOauth"], "plan": "x"}}),
        json.dumps(RENEWED | {"claudeAiOauth": {**RENEWED["claudeAiOauth"], "accessToken": {}}}),
        "not json",
        "",
    ],
)
def test_a_copy_with_any_other_change_is_dropped(
    person: Path, tmp_path: Path, written: str
) -> None:
    lent = credentials.lend("claude", person, tmp_path / "home")
    (tmp_path / "home" / ".claude" / ".credentials.json").write_text(written)
    assert credentials.take_back(lent) == []
    kept = (person / ".claude" / ".credentials.json").read_text()
    assert json.loads(kept) == SIGNED_IN


def test_a_link_to_another_file_is_not_read_and_a_newer_file_of_the_person_stays(
    person: Path, tmp_path: Path
) -> None:
    lent = credentials.lend("claude", person, tmp_path / "home")
    copy = tmp_path / "home" / ".claude" / ".credentials.json"
    (tmp_path / "other").write_text(json.dumps(RENEWED))
    copy.unlink()
    copy.symlink_to(tmp_path / "other")
    assert credentials.take_back(lent) == []
    copy.unlink()
    copy.write_text(json.dumps(RENEWED))
    newer = json.dumps(RENEWED | {"account": "bob"})
    (person / ".claude" / ".credentials.json").write_text(newer)
    assert credentials.take_back(lent) == []
    assert (person / ".claude" / ".credentials.json").read_text() == newer


@pytest.mark.parametrize("place", ["home", "home/.codex", "home/.codex/config.toml"])
def test_a_link_that_a_program_left_leads_nowhere(tmp_path: Path, place: str) -> None:
    target = tmp_path / "outside"
    (target / ".codex").mkdir(parents=True)
    for folder in (target, target / ".codex"):
        (folder / "config.toml").write_text("mine")
        (folder / "auth.json").write_text("mine")
    person, home, link = tmp_path / "person", tmp_path / "home", tmp_path / place
    (person / ".codex").mkdir(parents=True)
    (person / ".codex" / "auth.json").write_text('{"tokens": {"access_token": "old"}}')
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target / "config.toml" if place.endswith(".toml") else target)
    if place == "home":
        with pytest.raises(OutOfScope):
            credentials.lend("codex", person, home)
    else:
        credentials.lend("codex", person, home)
        assert (home / ".codex" / "config.toml").read_text().startswith("check_for_update")
        assert not any(path.is_symlink() for path in home.rglob("*"))
    assert {file.read_text() for file in target.rglob("*") if file.is_file()} == {"mine"}


def test_a_copy_behind_a_linked_folder_does_not_come_back(person: Path, tmp_path: Path) -> None:
    lent = credentials.lend("claude", person, tmp_path / "home")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".credentials.json").write_text(json.dumps(RENEWED))
    (tmp_path / "home" / ".claude").rename(tmp_path / "home" / "moved")
    (tmp_path / "home" / ".claude").symlink_to(tmp_path / "other")
    assert credentials.take_back(lent) == []
    assert json.loads((person / ".claude" / ".credentials.json").read_text()) == SIGNED_IN
    # The next run has its sign-in again, and one that it renews comes back.
    lent = credentials.lend("claude", person, tmp_path / "home")
    assert json.loads((tmp_path / "other" / ".credentials.json").read_text()) == RENEWED
    (tmp_path / "home" / ".claude" / ".credentials.json").write_text(json.dumps(RENEWED))
    assert credentials.take_back(lent) == [".credentials.json"]


def test_the_folders_of_a_program_are_its_packages_and_node(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "node_modules" / "@vendor" / "agent"
    package.mkdir(parents=True)
    (package / "cli.js").write_text("#!/usr/bin/env node\n")
    (package / "cli.js").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "agent").symlink_to(package / "cli.js")
    (tmp_path / "bin" / "node").write_text("")
    (tmp_path / "bin" / "node").chmod(0o755)
    found = credentials.folders_of("agent", f"{tmp_path}/bin")
    assert found == [tmp_path / "bin", tmp_path / "lib" / "node_modules"]
    assert credentials.folders_of("nothing", f"{tmp_path}/bin") == []
