"""Search by meaning, where the extra is installed; by words alone, where it is not."""

from collections.abc import Iterator

import pytest

from agiraph.providers import embeddings as module
from agiraph.providers.embeddings import embeddings
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.store import passages
from agiraph.testing import World, call, says

NOTES = {
    "payroll": "Salaries are transferred by the bank every four weeks.",
    "cellar": "The beans are kept in the cellar.",
    "async": "Coroutines yield at every await.",
}
FINISH = says(call("finish", summary="done"))


@pytest.fixture
def without() -> Iterator[None]:
    """As if the extra were not installed."""
    find_spec = module.importlib.util.find_spec
    embeddings.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module.importlib.util,
            "find_spec",
            lambda name: None if name == "wordllama" else find_spec(name),
        )
        yield
    embeddings.cache_clear()


async def _asked(world: World, query: str) -> str:
    """What a search says to an agent whose team has these notes."""
    ada = world.script("ada", says(call("knowledge_search", query=query)), FINISH)
    founded: NewTeam = await world.found("Look it up", start=False)
    for name, text in NOTES.items():
        await world.store.write(
            passages.put, team_id=founded.team.id, kind="report", ref=name, text=text
        )
    await world.say(founded.coordinator.id, "Go", team_id=founded.team.id)
    await world.settle()
    return ada.heard


async def test_what_says_alike_in_other_words_is_found(world: World) -> None:
    said = await _asked(world, "how do we pay people each month")
    assert NOTES["payroll"] in said
    assert NOTES["async"] not in said


@pytest.mark.usefixtures("without")
async def test_without_the_extra_a_search_goes_by_words(world: World) -> None:
    assert NOTES["cellar"] in await _asked(world, "beans")


@pytest.mark.usefixtures("without")
async def test_without_the_extra_other_words_find_nothing(world: World) -> None:
    assert "Nothing known" in await _asked(world, "wages and remuneration")


def test_a_text_without_words_is_near_to_nothing() -> None:
    model = embeddings()
    assert model is not None
    assert model.nearest("", [(1, "beans")], limit=5) == []
    assert model.nearest("beans", [(1, ""), (2, "beans and peas")], limit=5) == [2]
