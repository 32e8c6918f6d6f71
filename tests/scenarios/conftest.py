"""Fixtures of the scenarios: they run with what a user gets."""

from collections.abc import AsyncIterator

import pytest

from agiraph.testing import World
from tests.folding import folded_differences


@pytest.fixture
def easy_endings() -> bool:
    """Scenarios end their work as the product asks for it."""
    return False


@pytest.fixture
async def world(world: World) -> AsyncIterator[World]:
    """After each scenario, the board folded from the events equals the board in the rows."""
    yield world
    assert await world.store.read(folded_differences) == []
