"""What models answer to the questions of a research is read as far as it can be."""

from typing import Any

import pytest

from agiraph.core.runtime.structured_question import value_in
from agiraph.features.research.model.jobs import Brief, SubQuestion
from agiraph.features.research.verbs.answers import (
    Gaps,
    plain_brief,
    read_brief,
    read_gaps,
    read_verdicts,
)

ASKED = "How tall is it?"
ONE = SubQuestion(question="How tall?")


def brief(**more: Any) -> Brief:
    given: dict[str, Any] = {"question": ASKED, "language": "", "kind": "fact"}
    return Brief(**given | {"sub_questions": (ONE,), **more})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"sub_questions": [{"question": "How tall?"}]}', brief()),
        ('{"sub_questions": ["How tall?"]}', brief()),
        ('{"questions": "- How tall?"}', brief()),
        ('{"sub_questions": "1. How tall?\\n2. Since when?"}', brief(
            kind="comparison",
            sub_questions=(ONE, SubQuestion(question="Since when?")),
        )),
        ('{"question": "How tall?", "sub_questions": 7}', brief(question="How tall?")),
        ('[{"question": "How tall?", "kind": "FACT"}]', brief(question="How tall?")),
        ('My plan: ```json\n{"sub_questions": ["How tall?"], "kind": "novel"}\n```', brief()),
        ('{"sub_questions": ["How tall?", "How TALL?", "", 3, null]}', brief()),
        ('{"sub_questions": ["How tall?"], "assumptions": "the one in Paris"}', brief(
            assumptions=("the one in Paris",)
        )),
        ('{"sub_questions": ["How tall?"], "language": ["German"], "ask": 4}', brief()),
    ],
)  # fmt: skip
def test_a_brief_is_read_from_what_a_model_answers(text: str, expected: Brief) -> None:
    assert read_brief(value_in(text), question=ASKED) == expected


@pytest.mark.parametrize(
    "text", ["", "I will now do research.", "{}", "[]", "42", '{"plan": "look it up"}', "null"]
)
def test_an_answer_without_a_plan_is_no_brief(text: str) -> None:
    assert read_brief(value_in(text), question=ASKED) is None


def test_the_plain_brief_is_the_question_itself() -> None:
    found = plain_brief("How tall\nis it?")
    assert (found.question, found.sub_questions) == (ASKED, (SubQuestion(question=ASKED),))


def test_a_long_plan_is_cut() -> None:
    many = {"sub_questions": [f"{'x' * 900} {n}" for n in range(50)]}
    found = read_brief(many, question=ASKED)
    assert found is not None
    assert [len(each.question) for each in found.sub_questions] == [500]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"missing": [], "next": []}', Gaps()),
        ('{"missing": "the year", "next": ["Since when?"]}', Gaps(
            questions=(SubQuestion(question="Since when?"),), missing=("the year",)
        )),
        ('{"gaps": [{"what": "the year"}]}', Gaps(missing=("the year",))),
        ("Nothing is missing.", None),
        ('{"answer": "fine"}', None),
    ],
)  # fmt: skip
def test_gaps_are_read_from_what_a_model_answers(text: str, expected: Gaps | None) -> None:
    assert read_gaps(value_in(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"verdicts": [{"pair": 1, "verdict": "no"}, {"pair": 9, "verdict": "no"}]}', {1: "no"}),
        ('{"verdicts": {"1": "yes", "2": "perhaps"}}', {1: "yes"}),
        ('[{"pair": "Pair 2", "verdict": "Partly"}]', {2: "partly"}),
        ("All of them are supported.", None),
    ],
)
def test_verdicts_are_read_by_the_number_of_their_pair(text: str, expected: object) -> None:
    assert read_verdicts(value_in(text), pairs=2) == expected
