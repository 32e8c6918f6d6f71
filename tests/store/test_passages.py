"""Passages: a search finds whole sections by their words, alike on both databases."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.text.passages import MAX_CHARS, Section, search_words, sections, words
from agiraph.core.store.engine import migrate
from agiraph.core.store.texts import passages
from agiraph.core.store.tx import Tx
from agiraph.testing import World

ASYNC = """\
# Python asyncio

Coroutines run on one event loop.

## Patterns

Use a TaskGroup for structured concurrency.

```python
# this is no heading
await gather()
```

## Pitfalls

A blocking call stops every task.
"""
FISH = "# Fish\n\nA pike eats smaller fish. Fish, fish, fish.\n"


@pytest.fixture
async def team(tmp_path: Path, database_url: str) -> AsyncIterator[tuple[World, TeamId]]:
    async with World(tmp_path / "home", database_url=database_url, easy_endings=True) as world:
        founded = await world.found("Know things", start=False)
        yield world, founded.team.id


def find_refs(tx: Tx, team_id: TeamId, query: str, owner: str = "a", **more: object) -> list[str]:
    hits = passages.find(tx, query, team_id=team_id, owner=owner, **more)  # type: ignore[arg-type]
    return [f"{hit.ref}#{hit.title}" for hit in hits]


def test_a_text_is_split_at_headings_but_not_inside_code() -> None:
    assert [section.title for section in sections(ASYNC)] == [
        "Python asyncio",
        "Patterns",
        "Pitfalls",
    ]
    assert "# this is no heading" in sections(ASYNC)[1].text
    assert sections("no heading") == [Section("", "no heading")]
    assert sections("") == sections("\n \n") == []


def test_a_long_section_is_split_between_paragraphs() -> None:
    long = "\n\n".join(f"Paragraph {n}. " + "word " * 200 for n in range(20))
    pieces = sections(f"# Long\n\n{long}")
    assert len(pieces) > 1
    assert {piece.title for piece in pieces} == {"Long"}
    assert all(len(piece.text) <= MAX_CHARS for piece in pieces)
    assert sum(piece.text.count("Paragraph") for piece in pieces) == 20
    assert all(len(piece.text) <= MAX_CHARS for piece in sections("x" * 50_000))


def test_words_are_compared_without_case_accent_and_plural() -> None:
    assert words("Cafés, QUERIES & Patterns_of 3.11!") == [
        "cafe", "query", "pattern", "of", "3", "11",
    ]  # fmt: skip
    assert words("并发模型 in 日本語") == ["并发", "发模", "模型", "in", "日本", "本語"]
    assert words("ship it 🚀") == ["ship", "it", "🚀"]
    assert search_words("What is the event loop?") == ["event", "loop"]
    assert search_words("to be or not to be") == ["not"]
    assert search_words("what is it") == ["what", "is", "it"]


async def test_a_query_finds_whole_sections_best_first(team: tuple[World, TeamId]) -> None:
    world, team_id = team

    def act(tx: Tx) -> None:
        passages.put(tx, team_id=team_id, kind="note", ref="async.md", text=ASYNC, owner="a")
        passages.put(tx, team_id=team_id, kind="note", ref="fish.md", text=FISH, owner="a")

    await world.store.write(act)

    def look(tx: Tx) -> None:
        assert find_refs(tx, team_id, "python async", limit=1) == ["async.md#Python asyncio"]
        assert find_refs(tx, team_id, "structured concurrency patterns") == ["async.md#Patterns"]
        assert set(find_refs(tx, team_id, "blocking fish")) == {"async.md#Pitfalls", "fish.md#Fish"}
        assert find_refs(tx, team_id, "smaller task fish")[0] == "fish.md#Fish"
        [hit] = passages.find(tx, "blocking", team_id=team_id, owner="a")
        assert hit.text == "## Pitfalls\n\nA blocking call stops every task."

    await world.store.read(look)


async def test_a_passage_with_more_of_the_query_words_comes_first(
    team: tuple[World, TeamId],
) -> None:
    world, team_id = team

    def act(tx: Tx) -> None:
        one_word = "earnings " * 50
        for name, text in {
            "often": one_word,
            "both": "The earnings of last February were good, as far as one can say today.",
            "other": "February is short.",
        }.items():
            passages.put(tx, team_id=team_id, kind="page", ref=name, text=text)
        assert find_refs(tx, team_id, "earnings February")[0] == "both#"

    await world.store.write(act)


async def test_a_search_finds_no_passages_of_other_owners_or_teams(
    team: tuple[World, TeamId],
) -> None:
    world, team_id = team
    other = (await world.found("Another", start=False)).team.id

    def act(tx: Tx) -> None:
        for owner in ("a", "b", passages.EVERYONE):
            passages.put(
                tx, team_id=team_id, kind="note", ref=f"of {owner}", text="a secret", owner=owner
            )
        assert sorted(find_refs(tx, team_id, "secret")) == ["of a#", "of everyone#"]
        assert sorted(find_refs(tx, team_id, "secret", owner="b")) == ["of b#", "of everyone#"]
        assert find_refs(tx, other, "secret") == []
        assert find_refs(tx, team_id, "secret", kinds=("page", "report")) == []
        assert find_refs(tx, team_id, "secret", kinds=()) == []

    await world.store.write(act)


async def test_a_changed_text_replaces_the_old_one_and_the_same_changes_nothing(
    team: tuple[World, TeamId],
) -> None:
    world, team_id = team

    def act(tx: Tx) -> None:
        def put(text: str) -> bool:
            return passages.put(tx, team_id=team_id, kind="page", ref="u", text=text, title="T")

        assert put("# One\n\nold words\n\n# Two\n\nmore") is True
        assert put("# One\n\nold words\n\n# Two\n\nmore") is False
        assert put("# One\n\nnew words") is True
        assert find_refs(tx, team_id, "old more") == []
        assert find_refs(tx, team_id, "words") == ["u#T · One"]
        of: dict[str, Any] = {"team_id": team_id, "kind": "page", "owner": passages.EVERYONE}
        assert passages.known(tx, **of) == {"u": passages.fingerprint("T", "# One\n\nnew words")}
        assert passages.drop(tx, team_id=team_id, kind="page", ref="u") == 1
        assert passages.drop(tx, team_id=team_id, kind="page", ref="u") == 0
        assert find_refs(tx, team_id, "words") == []
        assert passages.known(tx, **of) == {}

    await world.store.write(act)


HOSTILE = [
    "", " ", "\0", '"', "'", "''", '"""', "(", ")", "NEAR(", "AND", "OR OR", "NOT", "a NEAR/2 b",
    "*", "a*", "-a", "a -b", "^a", "title:secret", "{title}: x", "a:*b", "!a & b | (c", "a <-> b",
    "%", "%s", ":name", "; drop table passages; --", "\\", "a\\'", "\u202e", "\ud800", "🚀", "並",
    "𠀀", "é" * 500, "x" * 100_000, "a " * 50_000, "&&&", "||", "to the", "\n\t\r",
    "' or 1=1", "{scope}", "{0}", "$1", "?", "@@", "ts_rank", "'a':*",
]  # fmt: skip


async def test_any_text_is_a_valid_query(team: tuple[World, TeamId]) -> None:
    world, team_id = team
    await world.store.write(
        passages.put, team_id=team_id, kind="note", ref="n", owner="a", text="plain secret words"
    )
    for query in HOSTILE:
        hits = await world.store.read(find_refs, team_id, query)
        assert hits in ([], ["n#"]), query
    assert await world.store.read(find_refs, team_id, 'secret" OR ("') == ["n#"]


async def test_any_text_is_found_by_its_own_words(team: tuple[World, TeamId]) -> None:
    """Words of every script, numbers and emoji."""
    world, team_id = team
    texts = [
        "Straße nach Zürich", "Ελληνικά γράμματα", "русские слова", "你好世界", "日本語のテキスト",
        "한국어 문장입니다", "ภาษาไทย", "🚀 launch", "v3.11.2-rc1", "1e5 0x1F 2026-01-05",
        "naïve café", "'quoted' \"twice\"", "a_b_c snake_case", "𠀀𠀁", "x" * 3000,
    ]  # fmt: skip

    def act(tx: Tx) -> None:
        for number, text in enumerate(texts):
            passages.put(tx, team_id=team_id, kind="page", ref=str(number), text=text)
        for number, text in enumerate(texts):
            assert find_refs(tx, team_id, text, limit=1) == [f"{number}#"], text
        assert find_refs(tx, team_id, "cafe") == ["10#"]
        assert find_refs(tx, team_id, "世界") == ["3#"]
        assert find_refs(tx, team_id, "你") == ["3#"]

    await world.store.write(act)


@pytest.mark.slow
async def test_random_bytes_neither_break_the_index_nor_the_query(
    team: tuple[World, TeamId],
) -> None:
    world, team_id = team
    chance = random.Random(11)

    def noise(length: int) -> str:
        return "".join(chr(chance.randrange(1, 0x2FFFF)) for _ in range(length))

    for number in range(60):
        text = noise(300)
        await world.store.write(
            passages.put, team_id=team_id, kind="page", ref=noise(5), text=text, title=noise(4)
        )
        await world.store.read(find_refs, team_id, noise(20))
        if search_words(text[:40]):
            hits = await world.store.read(
                passages.find, text[:40], team_id=team_id, owner="a", limit=number + 1
            )
            assert hits, text[:40]


def test_a_migration_may_contain_statements_for_one_database_only() -> None:
    made = migrate.Migration(
        1,
        "x",
        lambda: (
            "create table a (n {serial});\n-- only sqlite\ncreate b;\n-- a reason\n"
            "-- only postgres\ncreate c;\n-- both\ncreate d;"
        ),
    )
    words_of = {"serial": "integer"}
    assert made.statements({"dialect": "sqlite", **words_of}) == [
        "create table a (n integer)", "create b", "create d",
    ]  # fmt: skip
    assert made.statements({"dialect": "postgres", **words_of}) == [
        "create table a (n integer)", "create c", "create d",
    ]  # fmt: skip
