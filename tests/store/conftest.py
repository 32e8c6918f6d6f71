"""Fixtures of the store's tests: a store on a new database of each kind, and a team in it."""

from collections.abc import AsyncIterator

import pytest

from agiraph.app import open_store
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store.database import Store
from agiraph.testing import ManualClock


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    opened = await open_store(database_url, ManualClock())
    yield opened
    await opened.close()


@pytest.fixture
async def founded(store: Store) -> NewTeam:
    """A team of one with a node in its queue; no runtime claims it."""
    return await store.write(
        teams.create, owner_id=OWNER, goal="Keep what you are given", model="scripted/ada"
    )
