"""Claims: what a reply says was done or counted."""

import pytest

from agiraph.domain.claims import claims_to_have_stopped, unfounded


@pytest.mark.parametrize(
    "text",
    [
        "I've stopped the second task.",
        "Done. The second one has been cancelled.",
        "Stopped.",
        "Ich habe die zweite Aufgabe gestoppt.",
    ],
)
def test_a_claim_to_have_stopped_work_is_recognised(text: str) -> None:
    assert claims_to_have_stopped(text, asked="Stop the second one")


@pytest.mark.parametrize(
    "text",
    [
        "I have not stopped it.",
        "Nothing was stopped.",
        "I will stop it.",
        "Should I stop the second task?",
        "It stopped raining.",
        "I stopped reading at page 40.",
    ],
)
def test_other_words_about_stopping_are_no_claim(text: str) -> None:
    assert not claims_to_have_stopped(text, asked="Stop the second one")


def test_that_something_was_stopped_is_a_claim_only_if_it_was_asked_for() -> None:
    text = "The production was stopped in 2019."
    assert not claims_to_have_stopped(text, asked="What did Bob find?")
    assert claims_to_have_stopped(text, asked="Stop the production task")


def test_ids_and_counts_that_were_seen_nowhere_are_unfounded() -> None:
    seen = "node_1m7mkce8w91p has read 12 pages; 3 of 5 tasks are done"
    text = "node_1m7mkce8w91p read 12 pages and 40 sources, node_99999999zz has 5 tasks, 80 % done."
    assert unfounded(text, seen) == ["node_99999999zz", "40", "80"]


def test_numbers_that_count_no_work_are_left_alone() -> None:
    assert unfounded("Water boils at 100 degrees; the pump costs 4200 euros.", "") == []
