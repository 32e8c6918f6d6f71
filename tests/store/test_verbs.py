"""Any callable can be a verb, and an error while it is written reaches its caller."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from agiraph import faultpoints
from agiraph.core.domain.ids import TeamId
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store.database import Store
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx

PATIENCE_S = 20.0
"""Far longer than a write takes; a writer that stopped would never answer."""


class VerbError(Exception):
    """An error of the verb, or of the store."""


def rename(tx: Tx, team_id: TeamId, name: str) -> str:
    TEAMS.update(tx, team_id, name=name)
    return name


def rename_and_fail(tx: Tx, team_id: TeamId) -> None:
    rename(tx, team_id, "never seen")
    raise VerbError


class Renaming:
    """A verb that is an object: it has no `__name__`."""

    def __call__(self, tx: Tx, team_id: TeamId, name: str) -> str:
        return rename(tx, team_id, name)


@pytest.mark.parametrize("verb", [partial(rename, name="new"), Renaming(), partial(Renaming())])
async def test_a_verb_without_a_name_is_run_like_any_other(
    store: Store, founded: NewTeam, verb: Callable[..., str]
) -> None:
    """Fault points are named after the verb; a verb without a name once stopped the writer."""
    async with asyncio.timeout(PATIENCE_S):
        assert await store.write(verb, founded.team.id, name="new") == "new"
        assert (await store.read(TEAMS.get, founded.team.id)).name == "new"
        with pytest.raises(VerbError):
            await store.write(partial(rename_and_fail, team_id=founded.team.id))
        assert await store.write(rename, founded.team.id, "newer") == "newer"


@pytest.mark.parametrize("step", ["before", "in", "after"])
async def test_an_error_in_the_store_reaches_only_its_caller(
    store: Store, founded: NewTeam, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail_at_step(point: str) -> None:
        if point == f"db:{step}:rename":
            raise VerbError

    async with asyncio.timeout(PATIENCE_S):
        with monkeypatch.context() as patch:
            patch.setattr(faultpoints, "armed", fail_at_step)
            with pytest.raises(VerbError):
                await store.write(rename, founded.team.id, "new")
        found = await store.read(TEAMS.get, founded.team.id)
        assert found.name == ("new" if step == "after" else founded.team.name)
        assert await store.write(rename, founded.team.id, "newer") == "newer"
