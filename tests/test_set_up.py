"""The set-up step: which Python it takes, what it says, and that programs are whole or missing."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(
    folder: Path, *words: str, path: Path | None = None, **environment: str
) -> tuple[int, str, str]:
    """Run a command in a folder; the programs of `path` come first."""
    found = os.environ["PATH"] if path is None else f"{path}:{os.environ['PATH']}"
    ended = subprocess.run(
        words,
        cwd=folder,
        env={"PATH": found, "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_an_old_python_is_refused_with_a_sentence_before_anything_is_made(tmp_path: Path) -> None:
    old = program(
        tmp_path / "bin" / "old-python",
        '[ "$1" != --version ] || { echo Python 3.10.13; exit 0; }; exit 1',
    )
    install = str(ROOT / "packaging" / "install")

    code, out, err = run(tmp_path, "sh", install, "requirements.lock", PY=str(old))

    assert (code, out) == (1, "")
    assert err == (
        f"set-up: agiraph needs Python 3.11 or later, and '{old}' is Python 3.10.13. Install one, "
        "or name yours: make up PY=/path/to/python3\n"
    )
    assert not (tmp_path / ".venv").exists()


def checkout(folder: Path) -> Path:
    """Make a checkout with the script alone."""
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "install").write_text((ROOT / "tests" / "install").read_text())
    return folder


def test_a_program_that_could_not_be_installed_is_not_there_and_fails_the_set_up(
    tmp_path: Path,
) -> None:
    folder = checkout(tmp_path / "checkout")
    made = folder / ".venv/programs/codex"
    half = 'mkdir -p "$5/node_modules"; echo "no registry"; exit 1'
    whole = 'for each; do case $each in */.codex.new) mkdir -p "$each/node_modules";; esac; done'

    program(tmp_path / "bin" / "npm", half)
    failed = run(folder, "sh", "tests/install", "codex", path=tmp_path / "bin")
    was_there = made.exists()
    program(tmp_path / "bin" / "npm", whole)
    mended = run(folder, "sh", "tests/install", "codex", path=tmp_path / "bin")
    program(tmp_path / "bin" / "npm", half)
    again = run(folder, "sh", "tests/install", "codex", path=tmp_path / "bin")

    assert (failed[0], was_there) == (1, False)
    assert "'codex', which tests start, could not be installed" in failed[2]
    assert "no registry" in failed[2]
    assert (mended[0], (made / "node_modules").is_dir()) == (0, True)
    assert again == (0, "", "")  # it is there: nothing is installed


def test_an_installation_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "checkout")
    left = folder / ".venv/programs/.codex.new"
    (left / "node_modules" / "half").mkdir(parents=True)
    program(tmp_path / "bin" / "npm", f'mkdir -p "{left}/node_modules/whole"')

    code, _, _ = run(folder, "sh", "tests/install", "codex", path=tmp_path / "bin")

    found = sorted(path.name for path in (folder / ".venv/programs/codex/node_modules").iterdir())
    assert (code, found) == (0, ["whole"])
