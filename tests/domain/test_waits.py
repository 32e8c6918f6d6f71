"""Waits: what people are told of them."""

import pytest

from agiraph.core.domain.work import told_person


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("asked the human: Which?", "asked you: Which?"),
        ("asked the human to approve bash", "asked you to approve bash"),
        ("Help of bob (node_1m7nn85b89d5)", "Help of bob"),
        ("A (node_1); B (node_2)", "A; B"),
        ("the result of 'The list' (node_1m7nn85b89d5)", "the result of 'The list'"),
        ("bob: What the human said", "bob: What the human said"),
        ("the provider is down", "the provider is down"),
    ],
)
def test_a_person_reads_titles_without_ids_and_is_called_you(reason: str, told: str) -> None:
    assert told_person(reason) == told
