"""Program credentials: a program gets the person's sign-in, and only a renewed one comes back."""

import json
from pathlib import Path
from typing import Any

import pytest

from agiraph.home import program_credentials as credentials

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
