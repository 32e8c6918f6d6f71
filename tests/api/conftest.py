"""Fixture of the API's tests: a world behind a server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.serving import Served, serving


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "home") as opened:
        yield opened
