"""Semantic search with the extra installed, and search by words without it."""

from collections.abc import Iterator

import pytest

from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store.texts import passages
from agiraph.features.knowledge.recall import OwnerIndex
from agiraph.models import embeddings as module
from agiraph.models.embeddings import embeddings
from agiraph.testing import World, call, says

NOTES = {
    "payroll": "Salaries are transferred by the bank every four weeks.",
    "cellar": "The beans are kept in the cellar.",
    "async": "Coroutines yield at every await.",
}
FINISH = says(call("finish", summary="done"))


@pytest.fixture
def without_semantic_extra() -> Iterator[None]:
    """Behave as if the extra were not installed."""
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


async def _search_answer(world: World, query: str) -> str:
    """Return the answer of a search in a team that has these notes."""
    ada = world.script("ada", says(call("knowledge_search", query=query)), FINISH)
    founded: NewTeam = await world.found("Look it up", start=False)
    for name, text in NOTES.items():
        await world.store.write(
            passages.put, team_id=founded.team.id, kind="report", ref=name, text=text
        )
    await world.say(founded.coordinator.id, "Go", team_id=founded.team.id)
    await world.settle()
    return ada.heard


async def test_a_query_with_other_words_finds_a_similar_text(world: World) -> None:
    said = await _search_answer(world, "how do we pay people each month")
    assert NOTES["payroll"] in said
    assert NOTES["async"] not in said


@pytest.mark.usefixtures("without_semantic_extra")
async def test_without_the_extra_a_search_matches_words(world: World) -> None:
    assert NOTES["cellar"] in await _search_answer(world, "beans")


@pytest.mark.usefixtures("without_semantic_extra")
async def test_without_the_extra_a_query_with_other_words_finds_nothing(world: World) -> None:
    assert "Nothing known" in await _search_answer(world, "wages and remuneration")


@pytest.mark.slow
def test_an_empty_text_is_similar_to_nothing() -> None:
    model = embeddings()
    assert model is not None
    assert model.nearest("", [(1, "beans")], limit=5) == []
    assert model.nearest("beans", [(1, ""), (2, "beans and peas")], limit=5) == [2]


def test_vectors_of_many_texts_are_those_of_each_text_alone() -> None:
    model = embeddings()
    assert model is not None
    texts = ["", *NOTES.values(), "one", "\n"]
    rows = model.matrix(texts, above=model.matrix(["first"]))
    for row, text in zip(rows, ["first", *texts], strict=True):
        alone = model._compute(text)
        assert model.numpy.allclose(row, 0 if alone is None else alone, atol=1e-5)
    found = model.similar("salaries and the bank", rows, limit=3)
    assert found[0][0] == 2
    assert [cosine for _, cosine in found] == sorted((c for _, c in found), reverse=True)


def test_insights_are_ranked_alike_with_numpy_and_without_it() -> None:
    model = embeddings()
    assert model is not None
    index = OwnerIndex()
    for name, text in NOTES.items():
        index.add(name, text)
    asked = {"bean": 1.0, "cellar": 0.7, "bank": 0.4, "coroutine": 0.1, "unknown": 1.0}
    alike = [index.search(asked, limit=2, numpy=numpy) for numpy in (None, model.numpy)]
    assert [[match.id for match in found] for found in alike] == [["cellar", "payroll"]] * 2
    assert [m.words for m in alike[0]] == pytest.approx([m.words for m in alike[1]])
    index.remove("cellar")
    assert [m.id for m in index.search(asked, limit=3, numpy=model.numpy)] == ["payroll", "async"]
    assert index.search({}, limit=3, numpy=model.numpy) == []
