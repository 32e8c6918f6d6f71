"""Programs: where the set-up step has put the programs that tests start."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / ".venv" / "programs"


def folder_of(name: str) -> Path:
    """Return the folder of a program; fail the test if the set-up step has not installed it."""
    folder = FOLDER / name
    if not (folder / ".recipe").exists():
        pytest.fail(f"{name} is not installed: `sh tests/install {name}` does it")
    return folder


def npm(name: str, executable: str) -> Path:
    """Return the path of an executable from npm."""
    return folder_of(name) / "node_modules" / ".bin" / executable


def pypi(name: str, executable: str) -> Path:
    """Return the path of an executable from PyPI."""
    return folder_of(name) / "bin" / executable
