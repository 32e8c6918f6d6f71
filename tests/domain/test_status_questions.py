"""Status questions: which messages only ask how work stands."""

import pytest

from agiraph.domain.status_questions import is_status_question

ONLY_ASK = (
    "What have you found so far?",
    "Hi! How far are you?",
    "what did Bob find?",
    "What does the report say about prices?",
    "Any news?",
    "Thanks. How is it going?",
    "Was habt ihr bisher gefunden?",
    "Wie weit bist du?",
    "Qu'as-tu trouvé ?",
    "¿Qué has encontrado?",
)
ASK_FOR_WORK = (
    "Research the price of pumps.",
    "What have you found so far? Also compare it with the other one, please.",
    "Could you find out how far Mars is?",
    "Use the cheaper one",
    "Stop the second one",
    "Go on with what Bob did",
    "Thanks!",
    "",
    "How far is it? " + "x" * 400,
)


@pytest.mark.parametrize("text", ONLY_ASK)
def test_a_question_about_the_state_of_the_work_is_recognised(text: str) -> None:
    assert is_status_question(text)


@pytest.mark.parametrize("text", ASK_FOR_WORK)
def test_a_request_is_no_question_about_the_state_of_the_work(text: str) -> None:
    assert not is_status_question(text)
