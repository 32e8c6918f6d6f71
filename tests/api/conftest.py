"""What the API's tests share: a served world."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.serving import Served, serving


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "home") as opened:
        yield opened
