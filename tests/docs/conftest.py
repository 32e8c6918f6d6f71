"""Fixture of the documents' tests: `agiraph` with an empty home."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def agiraph(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "home").prepared()
