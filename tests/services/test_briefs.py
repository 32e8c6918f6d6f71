"""Briefs: the parts of a task become the text that its worker reads, in whatever form they come."""

import pytest

from agiraph.core.services.board.briefs import Brief, read_list, read_task, read_text

WHOLE = """\
Find the prices, for a report.

Context: A is made by X.

Inputs:
- nodes/node_1/published/a.md
- https://a.example
(In bash, nodes/<id>/published is ../../<id>/published. Copy what you want to change.)

Output: `prices.md`: a table.

Boundaries: No reviews."""


def test_a_brief_shows_each_part_that_is_given_under_its_name() -> None:
    brief = Brief(
        objective="Find the prices, for a report.",
        context="A is made by X.",
        inputs=("nodes/node_1/published/a.md", "https://a.example"),
        output="`prices.md`: a table.",
        boundaries="No reviews.",
        effort="low",
    )
    assert brief.text == f"{WHOLE}\n\nEffort: a quick look, about 3 to 10 calls."
    assert Brief(objective=" Count. ", context=" ").text == "Count."


PARTS = {
    "objective": "Find the prices, for a report.",
    "context": "A is made by X.",
    "inputs": ["nodes/node_1/published/a.md", "https://a.example"],
    "output": "`prices.md`: a table.",
    "boundaries": "No reviews.",
}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("Count the files.", "Count the files."),
        ("{not json", "{not json"),
        ({"files": 3}, {"files": 3}),
        (PARTS, WHOLE),
        (str(PARTS), WHOLE),
        ({"task": "Count.", "deadline": "Monday"}, "Count.\n\ndeadline: Monday"),
    ],
)
def test_a_task_given_as_an_object_is_read_as_its_text(given: object, read: object) -> None:
    assert read_task(given) == read


def test_lists_and_strings_take_each_others_place() -> None:
    assert read_text(["no reviews", "no forums"]) == "- no reviews\n- no forums"
    assert read_list("- a.md\n\nb.md") == ["a.md", "b.md"]
    assert read_list('["a.md", "b.md"]') == ["a.md", "b.md"]
    assert (read_text("x"), read_list(["x"]), read_list(None)) == ("x", ["x"], None)
