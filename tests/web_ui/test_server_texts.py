"""Server texts: the web UI recognises some sentences of the server by a pattern."""

import re
from pathlib import Path

import pytest

from agiraph.core.domain.ids import TeamId
from agiraph.core.services.board import texts

SOURCES = Path(__file__).parents[2] / "web/src"


def pattern(path: str, before: str) -> re.Pattern[str]:
    """Return the pattern that a file of the web UI has after these words."""
    source = (SOURCES / path).read_text()
    [found] = re.findall(rf"{re.escape(before)}/(.+?)/[,;]", source)
    return re.compile(found)


@pytest.mark.parametrize(
    "name", ["research", "Ana's research", 'the "big" one', "first, done again"]
)
@pytest.mark.parametrize("is_redone", [False, True])
def test_the_name_of_a_stage_is_found_in_the_reason_of_a_wait(name: str, is_redone: bool) -> None:
    reason = texts.stage_wait(name, is_redone=is_redone)

    found = pattern("lib/waitingReason.ts", 'you")\n    .replace(').match(reason)

    assert found is not None
    assert found[2] == name
    assert reason[found.end() :] == (", done again" if is_redone else "")


def test_the_command_for_another_model_is_taken_out_of_a_question() -> None:
    asked = texts.stopped_by_model("The key is wrong.", TeamId("team_1m7nn85b89d5"))

    shown = pattern("views/conversation/QuestionCard.tsx", "const COMMAND = ").sub("", asked)

    assert shown == texts.stopped_by_model("The key is wrong.", None)
