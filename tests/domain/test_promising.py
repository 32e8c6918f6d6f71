"""Promising: a promise by a time is found in what a person reads of a reply."""

import pytest

from agiraph.domain.promising import LONGEST_READ, promises_by_a_time

PROMISE = "I'll send it by tomorrow."


@pytest.mark.parametrize(
    ("text", "promises"),
    [
        (PROMISE, True),
        ("I'll send it. See you tomorrow.", False),
        ("x" * (LONGEST_READ - len(PROMISE) - 1) + "\n" + PROMISE, True),
        ("x" * LONGEST_READ + "\n" + PROMISE, False),
    ],
    ids=["in a sentence", "in two sentences", "at the end of a long text", "behind what is read"],
)
def test_a_promise_by_a_time_is_found_in_what_a_person_reads(text: str, promises: bool) -> None:
    assert promises_by_a_time(text) is promises
