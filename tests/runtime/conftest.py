"""Fixtures of the runtime's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.testing import World


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[World]:
    async with World(tmp_path / "home", easy_endings=True) as world:
        yield world
