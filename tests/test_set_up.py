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


PYTHON = """
case "$1 $2" in
    "--version "*) echo Python 3.13.1 ;;
    "-c "*) echo True ;;
    "-m venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
    *) cat pip-says; exit "$(cat pip-ends)" ;;
esac
"""


def test_the_set_up_says_how_far_it_is_wherever_packages_come_from(tmp_path: Path) -> None:
    python = program(tmp_path / "python", PYTHON)
    (tmp_path / "some.lock").write_text("".join(f"p{n}==1\n" for n in range(30)))
    lines = [f"Collecting p{n}\n  Downloading p{n}" for n in range(10)]
    lines += [f"Processing /wheels/p{n}.whl" for n in range(10, 20)]
    lines += [f"Requirement already satisfied: p{n}" for n in range(20, 30)]
    (tmp_path / "pip-says").write_text("\n".join([*lines, "Installing collected packages: p1\n"]))
    (tmp_path / "pip-ends").write_text("0")
    install = ("sh", str(ROOT / "packaging" / "install"), "some.lock")

    code, out, err = run(tmp_path, *install, PY=str(python))

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "set-up: installing 30 packages (some.lock) into .venv with Python 3.13.1",
        *(f"set-up: {n} of 30 packages fetched" for n in (10, 20, 30)),
        "set-up: unpacking them",
        "set-up: done; the command is .venv/bin/agiraph",
    ]
    (tmp_path / "pip-ends").write_text("1")
    code, _, err = run(tmp_path, *install, PY=str(python))
    assert (code, "Is a package index within reach?" in err) == (1, True)


def test_a_program_that_is_no_python_is_refused(tmp_path: Path) -> None:
    install = str(ROOT / "packaging" / "install")
    code, out, err = run(tmp_path, "sh", install, "some.lock", PY="true")
    assert (code, out, "needs Python 3.11 or later" in err) == (1, "", True)


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
