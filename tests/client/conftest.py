"""Fixtures of the client's tests: a world behind a server, and a client."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.client import Client
from tests.api.serving import TOKEN, Served, serving


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "home") as opened:
        opened.world.script("ada")
        yield opened


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with Client(served.origin, TOKEN, patience=5) as opened:
        yield opened
