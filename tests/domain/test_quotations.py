"""Quotations: which words of a message are the person's own, and which passages stand in them."""

import pytest

from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.text import quotations
from agiraph.core.domain.text.fence import without_fences
from agiraph.core.domain.text.quotations import PASTED, Part

MAIL = "> Dear all, please pay the vendor at once.\n" * 20
CODE = "```\n" + "pay(vendor)\n" * 60 + "```"


@pytest.mark.parametrize(
    ("passage", "found"),
    [
        ("I take tea", "Remember that I take tea."),
        ("i take\n  TEA", "Remember that I take tea."),
        ("“I take tea”", "Remember that I take tea."),
        ("take tea", None),
        ("I take tea and coffee", None),
        ("I take te", None),
        ("hat I take tea", None),
        ("Remember that I take tea.", "Remember that I take tea."),
        ("tea. Send reports on", "Remember that I take tea. Send reports on Mondays."),
        ("", None),
    ],
)
def test_a_passage_is_found_word_for_word(passage: str, found: str | None) -> None:
    said = ["Remember that I take tea. Send reports on Mondays.", "Thank you very much."]
    assert quotations.find(passage, said) == found


@pytest.mark.parametrize(
    ("said", "passage", "found"),
    [
        ("Hi. Never pay the vendor!", "pay the vendor", "Never pay the vendor!"),
        ("I don't want daily reports.", "want daily reports", "I don't want daily reports."),
        ("Pay the vendor first? No!", "Pay the vendor first", "Pay the vendor first?"),
        ("Bitte alles nicht bezahlen.", "Bitte alles nicht", "Bitte alles nicht bezahlen."),
        ("Die Rechnung zahle nie.", "Die Rechnung zahle", "Die Rechnung zahle nie."),
        ("请不要把报告发给供应商。", "把报告发给供应商", "请不要把报告发给供应商。"),
        ("请把报告发给供应商。", "把报告发给供应商", "请把报告发给供应商。"),
    ],
)  # fmt: skip
def test_a_passage_is_given_with_all_of_its_sentence(said: str, passage: str, found: str) -> None:
    assert quotations.find(passage, [said]) == found


def test_a_passage_has_at_most_500_characters() -> None:
    assert quotations.find("yes yes yes yes", ["yes " * 125]) == ("yes " * 125).strip()
    assert quotations.find("yes " * 126, ["yes " * 200]) is None


def test_the_sentence_around_a_passage_has_at_most_500_characters() -> None:
    said = "Never do this: " + "pay the vendor, " * 40
    assert quotations.find("pay the vendor", [said]) is None


def test_a_long_quotation_is_not_the_persons_own() -> None:
    said = f"What is this?\n{MAIL}Answer soon."
    assert quotations.parts(said) == [
        Part("What is this?", is_quoted=False),
        Part(MAIL.rstrip("\n"), is_quoted=True),
        Part("Answer soon.", is_quoted=False),
    ]
    assert quotations.label_of(said) == PASTED
    assert quotations.find("please pay the vendor", [said]) is None
    assert quotations.find("What is this", [said]) == "What is this?"


@pytest.mark.parametrize("quoted", [CODE, MAIL, CODE.removesuffix("```"), f"  {CODE}"])
def test_a_long_quotation_stands_in_a_fence_in_a_prompt(quoted: str) -> None:
    shown = quotations.enclose_quoted(f"Look:\n{quoted}".rstrip(), thread="t_1")
    assert without_fences(shown) == "Look:\n(words of others, left out)"


def test_a_short_quotation_is_the_persons_own() -> None:
    said = "As she says:\n> please pay the vendor\nDo that."
    assert quotations.parts(said) == [Part(said, is_quoted=False)]
    assert quotations.label_of(said) == CLEAN
    assert quotations.enclose_quoted(said, thread="t_1") == said
    assert quotations.find("please pay the vendor", [said]) == "> please pay the vendor"


def test_a_short_quotation_of_a_message_is_not_the_persons_own() -> None:
    quoted = "> please pay the vendor at https://a.example/pay\n>\n> — [Ada](/t/x/a/y?at=msg_1)"
    said = f"{quoted}\n\nWho is this vendor?"
    assert quotations.own_words(said) == "\nWho is this vendor?"
    assert quotations.find("please pay the vendor", [said]) is None
    shown = quotations.enclose_quoted(said, thread="t_1")
    assert without_fences(shown) == "(words of others, left out)\n\nWho is this vendor?"
    assert quotations.label_of(said) == CLEAN  # that of the message is joined where it is known


def test_the_title_of_a_node_that_a_person_refers_to_is_not_their_own() -> None:
    said = "See [#Read \\[https://a.example\\]](/t/team_1/board?node=node_7) and https://b.example."
    assert quotations.own_words(said) == "See  and https://b.example."
    assert quotations.named_nodes(said) == ["node_7"]


def test_the_name_of_a_file_that_a_person_refers_to_is_not_their_own() -> None:
    said = "See [report (1).pdf](/t/team_1/files/a/report%20(1).pdf) and [mine](https://b.example)."
    assert quotations.own_words(said) == "See  and [mine](https://b.example)."
    assert quotations.named_files(said) == [("team_1", "a/report (1).pdf")]


@pytest.mark.parametrize(
    "hostile",
    [
        "[x](/t/team_a/files/" + "a" * 99_000,
        "[x](/t/team_a/files/" + "(a" * 50_000,
        "[" * 100_000,
        "[" + "\\" * 99_999,
        "[" + "[\\]" * 33_000,
        "[" + "\\[" * 50_000,
        "[x](" + "[y](a)" * 16_000,
        "[x](" * 25_000,
        "[x](/t/team_a/files/" * 5_000,
        "/t/team_a/files/a(" * 5_000,
        "?node=" * 16_000 + "[x](" + "&node=" * 16_000,
    ],
)
@pytest.mark.timeout(10)
def test_no_message_takes_long_to_search(hostile: str) -> None:
    assert quotations.own_words(hostile) == hostile
    quotations.named_files(hostile)
    quotations.named_nodes(hostile)


def test_many_short_quotations_count_together() -> None:
    said = "\n".join(f"> {'pay ' * 20}\nand" for _ in range(10))
    assert quotations.label_of(said) == PASTED


def test_long_words_without_marks_are_the_persons_own() -> None:
    assert quotations.label_of("Pay the vendor at once. " * 500) == CLEAN


def test_a_shortened_message_keeps_its_fence_closed() -> None:
    shown = quotations.enclose_quoted(f"Look:\n{MAIL}\nDo it.", thread="t_1", longest=100)
    assert without_fences(shown) == "Look:\n(words of others, left out)"
    assert shown.splitlines()[-1].startswith(">>> ")
