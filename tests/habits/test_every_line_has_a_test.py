"""Every habit of models has a test: its id begins the test's name (`$1` is `cost_1`)."""

import re
from pathlib import Path

LINES = {"c": 26, "e": 21, "d": 20, "t": 12, "m": 8, "k": 10, "p": 24, "cost_": 8}
"""How many habits each group has: calling, ending, delegating, truthfulness, memory, talk,
providers, cost."""
NOTHING_TO_ASSERT = {"d1", "t12", "cost_5", "cost_8", "k9"}
"""Habits of which only an evaluation with real models could say something."""


def test_every_habit_has_a_test() -> None:
    wanted = {f"{group}{number}" for group, most in LINES.items() for number in range(1, most + 1)}
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    source = "\n".join(file.read_text() for file in files)
    tested = set(
        re.findall(r"^(?:async )?def test_((?:cost_|[cedtmkp])\d+)_", source, re.MULTILINE)
    )
    assert sorted(wanted - NOTHING_TO_ASSERT - tested) == []
    assert sorted(tested - wanted) == []
