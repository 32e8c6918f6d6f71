"""Spill: a long tool answer goes to a file that the agent can page through."""

from pathlib import Path

from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.calls import ANSWER_CHARACTERS, HEAD_CHARACTERS, TAIL_CHARACTERS
from agiraph.core.tools.base import tool
from agiraph.testing import World, call, says

BOOK = "".join(f"line {n:06}\n" for n in range(10_000))


@tool(effect="repeatable")
async def recite(ctx: RunContext) -> Answer:
    """Say a whole book."""
    return Done(BOOK)


async def test_an_answer_too_long_for_the_thread_is_kept_whole_in_a_file(
    tmp_path: Path, database_url: str
) -> None:
    async with World(
        tmp_path / "home", database_url=database_url, tools=(recite,), easy_endings=True
    ) as world:
        ada = world.script(
            "ada",
            says(call("recite")),
            says(call("read_file", path="placeholder")),
            says(call("finish", summary="read")),
        )
        ada.lines[1] = lambda request: says(
            call("read_file", path=_path_in(request.transcript.turns[-2].text), offset=50_000)
        )
        founded = await world.found("Recite")
        await world.settle()
        [goal] = await world.board(founded.team.id)
        turns = [t for t in await world.turns(goal.id) if t.role == "tool"]

    shown = turns[0].text
    assert len(shown) < ANSWER_CHARACTERS
    assert shown[:HEAD_CHARACTERS] == BOOK[:HEAD_CHARACTERS]
    assert shown[-TAIL_CHARACTERS:] == BOOK[-TAIL_CHARACTERS:]
    assert turns[1].text.startswith(BOOK[50_000:50_100])
    kept = tmp_path / "home" / "teams" / founded.team.id / _path_in(shown)
    assert kept.read_text() == BOOK


def _path_in(text: str) -> str:
    return next(word for word in text.split() if word.startswith("agents/")).rstrip(":")
