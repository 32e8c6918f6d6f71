"""The check of a report: what the ledger does not show is found, told, and struck."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agiraph.features.research.model.jobs import EvidenceRow
from agiraph.features.research.model.page_quotes import QuoteFound, find_quote
from agiraph.features.research.model.report_check import (
    check_report,
    describe,
    enforce,
    numbers,
    strike,
)
from tests.domain.evidence_rows import row

LEDGER = [
    row("e1", "The tower is 330 m tall and was finished on 31 March 1889."),
    row("e2", "Visitors in 2019: 6.2 million", url="https://two.example/x", published="2020-02-01"),
    row("e3", "„Der Turm ist das Wahrzeichen der Stadt“, sagte die Bürgermeisterin."),
    row("e4", "The old tower is 300 metres tall.", url="https://four.example/"),
    row(
        "e5",
        "電波塔の高さは３３３メートルで、「東京の象徴」とされる。",
        url="https://five.example/",
    ),
    row("e6", "يبلغ ارتفاع البرج ٣٢٤ مترًا", url="https://six.example/", title="H₂O, 1887"),
]


@pytest.mark.parametrize(
    "text",
    [
        "The tower is 330 m tall [e1].",
        "Der Turm wurde am 31. März 1889 fertig [e1].",
        "La tour a été achevée en mars 1889 [e1].",
        "2019 kamen 6,2 Millionen Menschen; die Seite ist vom 1. Februar 2020 [e2].",
        "It is “das Wahrzeichen der Stadt” [e3].",
        "> Der Turm ist das Wahrzeichen der Stadt [e3]",
        "It is the tallest tower of the city [e1].",
        "| tower | height |\n|---|---|\n| new | 330 m [e1] |\n| old | 300 m [e4] |",
        "1. The tower is tall.\n2. Nobody knows why.",
        "## What stands since 1889\n\nNothing else.",
        "See https://two.example/x for more [e2].",
        "Figures for 2031 could not be found.",
        "See two.example/x for more, and Node.js/Deno, ASP.NET/C, and/or e.g./i.e. [e2].",
        "The tower\u2019s lifts don\u2019t open; the visitors\u2019 song is new \u2018 or so.",
        "Home \u203a Towers \u203a Old.",
        "Sie ist \u201adas Wahrzeichen der Stadt\u2018 [e3]. Sie steht.",
        "The A380 does not land there.",
        "高さは333メートルで、「東京の象徴」とされる[e5]。",
        "برج ارتفاعه 324 مترًا [e6].",
        "मीनार ३२४ मीटर ऊँची है। [e6]",
        "It holds H2O since 1887 [e6].",
        "“The tower is […] finished on 31 March” [e1].",
        "",
    ],
)
def test_what_the_ledger_shows_has_no_faults(text: str) -> None:
    question = "How tall is the tower, can an A380 land, and what is planned for 2031?"
    assert check_report(text, LEDGER, question=question) == []


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        ("The tower is tall [e9].", "unknown_id", "e9"),
        ("The tower is 330 m tall.", "uncited", "the number 330"),
        ("It is from 31 March 1889.", "uncited", "the number 31"),
        ("It is called “the lady”.", "uncited", "the quotation “the lady”"),
        ("> Der Turm ist schön", "uncited", "the quotation “Der Turm ist schön”"),
        ("The tower is 331 m tall [e1].", "not_in_quotes", "the number 331"),
        ("The tower is 330 m tall [e4].", "not_in_quotes", "the number 330"),
        ("It was finished on 30 March 1889 [e1].", "not_in_quotes", "the number 30"),
        ("It is “das Wahrzeichen des Landes” [e3].", "not_in_quotes", None),
        ("It is „der Turm der Stadt“ [e3].", "not_in_quotes", None),
        ("It is 32 m taller (330 m - 300 m = 32 m) [e1, e4].", "not_in_quotes", "the number 32"),
        ("It is 30 m taller [e1, e4].", "not_in_quotes", "the number 30"),
        ("See https://evil.example/?q=1 [e1].", "foreign_url", "https://evil.example/?q=1"),
        ("See [this](//evil.example/a).", "foreign_url", "//evil.example/a"),
        ("See [this](javascript:alert) now.", "foreign_url", "javascript:alert"),
        ("See www.evil.example now.", "foreign_url", "www.evil.example"),
        ("See evil.example/a?q=1.", "foreign_url", "evil.example/a?q=1"),
        ("See 9.evil.example:80/a.", "foreign_url", "9.evil.example:80/a"),
        ('[x]: //evil "t"', "foreign_url", "//evil"),
        ('See <img src="x.png"> now.', "foreign_url", "x.png"),
        ("```\nsudo reboot --in 42\n```", "uncited", "the number 42"),
        ("| new | 331 m [e1] |", "not_in_quotes", "the number 331"),
        ("## 77 reasons\n\nText.", "not_in_quotes", "the number 77"),
        ("EUR 500 are needed.", "uncited", "the number 500"),
        ("There are 1,200 (12 * 100 = 1,200) [e1].", "not_in_quotes", "the number 1,200"),
        ("It is an A380 [e1].", "not_in_quotes", "the number 380"),
        ("The tower is 0.33 km tall [e1].", "not_in_quotes", "the number 0.33"),
        ("There were 6,200,000 visitors [e2].", "not_in_quotes", "the number 6,200,000"),
        ("It was read on 2020-02-05 [e2].", "not_in_quotes", "the number 05"),
        ("It is 30 m taller (330 m - 300 m = 30 m) [e1, e4].", "not_in_quotes", "the number 30"),
        ("高さは334メートル[e5]。", "not_in_quotes", "the number 334"),
        ("高さは333メートル。", "uncited", "the number 333"),
        ("「日本の象徴」とされる[e5]。", "not_in_quotes", "the quotation “日本の象徴”"),
        ("ارتفاعه ٣٢٥ مترًا [e6].", "not_in_quotes", "the number ٣٢٥"),
        ("मीनार ३२५ मीटर ऊँची है।", "uncited", "the number ३२५"),
        ("หอคอยสูง331เมตร [e1]", "not_in_quotes", "the number 331"),
        ("It is \u2018the lady\u2019.", "uncited", "the quotation “the lady”"),
        ("Sie heißt \u201adie Dame\u2018 dort.", "uncited", "the quotation “die Dame”"),
        ("Elle est \u2039la dame\u203a.", "uncited", "the quotation “la dame”"),
        ("It is <q lang='en'>the lady</q>.", "uncited", "the quotation “the lady”"),
        (
            "It is \u2018the don\u2019t-do-it\u2019 [e1].",
            "not_in_quotes",
            "the quotation “the don\u2019t-do-it”",
        ),
        ("- > Der Turm ist schön", "uncited", "the quotation “Der Turm ist schön”"),
        ("It is “he tower is 330 m” [e1].", "not_in_quotes", "the quotation “he tower is 330 m”"),
        ("It is “old tower […] finished on” [e1, e4].", "not_in_quotes", None),
        ("It is “finished on … tower is 330” [e1].", "not_in_quotes", None),
        ("It is “The … tall” [e1].", "not_in_quotes", "the quotation “The … tall”"),
    ],
)
def test_what_the_ledger_does_not_show_is_a_fault(text: str, kind: str, what: str | None) -> None:
    first = check_report(text, LEDGER)[0]
    assert first.kind == kind
    assert what is None or first.what == what


@pytest.mark.parametrize(
    "text",
    [
        "It is the tallest tower, and nobody has seen a taller one in a hundred years.",
        "The tower is 330 km tall [e1].",
        "It was finished on 31 May 1889 [e1].",
    ],
)
def test_superlatives_units_and_words_are_left_to_the_support_question(text: str) -> None:
    assert check_report(text, LEDGER) == []


def test_only_the_years_and_names_of_a_question_need_no_evidence() -> None:
    question = "Was the T34 tower 330 m tall on 3 May 2031, or 2,019 m?"
    text = "The T34 of 2031 stood. [e4]\nIt had 330 m [e4].\nIt was 3 May.\nIt is a T345.\n2,019 m!"
    found = [(f.kind, f.what) for f in check_report(text, LEDGER, question=question)]
    assert found == [
        ("not_in_quotes", "the number 330"),
        ("uncited", "the number 3"),
        ("uncited", "the number 345"),
        ("uncited", "the number 2,019"),
    ]
    # No space divides the words of these: the number is what is asked.
    asked = check_report("塔高331 米 [e1]。", LEDGER, question="塔高331 米吗\uff1f2031年")
    assert [f.what for f in asked] == ["the number 331"]
    assert check_report("塔于2031年", LEDGER, question="塔高331米吗\uff1f2031年") == []


def test_a_citation_belongs_to_its_own_sentence() -> None:
    lines = "The tower is 330 m tall [e1].\nThe old one has 300 metres.\nBoth stand [e1][e4]."
    for text in (lines, lines.replace("\n", "\r\n"), lines.replace("\n", "\u2028")):
        assert [(f.kind, f.what) for f in check_report(text, LEDGER)] == [
            ("uncited", "the number 300")
        ]
    beside = "The tower is 330 m tall. [e1] The old one has 330 metres [e4]. It has 9 lifts."
    assert [(f.unit.text, f.kind) for f in check_report(beside, LEDGER)] == [
        ("The old one has 330 metres [e4].", "not_in_quotes"),
        ("It has 9 lifts.", "uncited"),
    ]
    inside = "They say “it is 331 m tall [e1]. It stands” [e1]."
    assert [f.unit.text for f in check_report(inside, LEDGER)] == [inside, inside]
    short = "It cost approx. 6.2 million in 2019, e.g. by visitors of ca. 2019\n(or so) [e2]."
    assert check_report(short, LEDGER) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,234.5", "1.234,5"),
        ("1 234,5", "1'234.5"),
        ("1\u202f234", "1234"),
        ("12,34,567", "1234567"),
        ("1.200.000", "1,200,000"),
        ("4,50 Euro", "4.50 euros"),
        ("1.2.3", "version 1.2.3"),
        ("380", "the A380"),
        (".5 %", "0.5 percent"),
        ("高500米", "500"),
        ("\uff13\uff13\uff10", "330"),
        ("۳۳۰", "३३०"),
        ("১,২৩৪\u066b৫", "1234.5"),
        ("1 May 2020", "2020-05-01 and 1.2, 2020 / 1"),
    ],
)
def test_two_forms_are_one_number(one: str, other: str) -> None:
    assert set(numbers(one)) <= set(numbers(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5", "15"),
        ("1.5", "15"),
        ("0.330", "330"),
        ("5 %", ".5 %"),
        ("1.2.3", "1.2.4"),
        ("12,5", "125"),
        ("1,2345", "12345"),
        ("31.3.1889", "31 3 1889"),
    ],
)
def test_two_forms_are_different_numbers(one: str, other: str) -> None:
    assert not set(numbers(one)) & set(numbers(other))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("埃菲尔铁塔高500米。", "500"),
        ("สูง500 เมตร", "500"),
        ("_500 m_", "500"),
        ("5**00** m", "500"),
        ("5\u200b0&#48; m", "500"),
        ("1&nbsp;500 m", "1\u00a0500"),
        ("ca.500", "500"),
        (".5 %", ".5"),
        ("the mid-1990s", "1990"),
        ("COVID-19", "19"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_a_number_is_seen_whatever_stands_before_it(text: str, number: str) -> None:
    assert list(numbers(text).values()) == [number]


def test_the_writer_is_told_what_is_wrong_and_what_to_do() -> None:
    faults = check_report("The tower is 331 m tall [e1].\n\nIt has 9 lifts.", LEDGER)
    assert describe(faults) == (
        '1. "The tower is 331 m tall [e1].": the number 331 stands in none of the words that it '
        "cites (e1). Write it as they do, cite the evidence in which it stands, or leave it out.\n"
        '2. "It has 9 lifts.": it states the number 9 and cites no evidence. Add the id of '
        "the evidence that shows it, as in [e1], or leave it out."
    )


def test_striking_takes_out_sentences_items_rows_and_empty_sections() -> None:
    text = (
        "# Tower\n\nIt is 330 m tall [e1].\nIt weighs 7 tons.\nIt stands.\n\n"
        "## Findings\n\n- 331 m [e1].\n- 300 metres [e4].\n\n"
        "| a | b |\n|---|---|\n| x | 1 |\n| y | 330 m [e1] |\n\n## Rest\n\n- It has 9 lifts.\n"
    )
    kept, struck = enforce(text, LEDGER)
    assert kept == (
        "# Tower\n\nIt is 330 m tall [e1].\nIt stands.\n\n"
        "## Findings\n\n- 300 metres [e4].\n\n"
        "| a | b |\n|---|---|\n| y | 330 m [e1] |\n"
    )
    assert struck == ["It weighs 7 tons.", "331 m [e1].", "| x | 1 |", "It has 9 lifts."]
    assert strike("Nothing is wrong.", []) == ("Nothing is wrong.", [])


@pytest.mark.parametrize("rule", ["|---|:-:|", "| - | - |", "---|---"])
def test_a_table_whose_rows_were_all_struck_goes_with_its_head_and_heading(rule: str) -> None:
    head = "a | b" if rule == "---|---" else "| a | b |"
    rows = "| x | 1 |\n| y | 7 tons |\n"
    table = f"{head}\n{rule}\n{rows}"
    text = f"## Tower\n\nIt stands.\n\n## Sizes\n\n{table}\n## Rest\n\nIt is old.\n"
    kept, struck = enforce(text, LEDGER)
    assert kept == "## Tower\n\nIt stands.\n\n## Rest\n\nIt is old.\n"
    assert struck == ["| x | 1 |", "| y | 7 tons |"]
    # At the end of a report, and beside a table of which a row is left.
    ends = f"It stands.\n\n{head}\n{rule}\n| x | 1 |"
    assert enforce(ends, LEDGER)[0] == "It stands.\n"
    whole = f"{head}\n{rule}\n| x | old |\n| y | 7 |\n"
    assert enforce(whole, LEDGER)[0] == f"{head}\n{rule}\n| x | old |\n"


# Proof: whatever a model writes, a report that was checked and struck holds nothing that the ledger
# and the pages do not.
PAGES = {
    "https://one.example/a": "The bridge is 120 m long, opened on 3 May 1998 by “the mayor”.",
    "https://two.example/b": "The toll rose to 4.50 euros, and 1.2 million cars crossed it.",
}
QUOTES = [
    ("https://one.example/a", "The bridge is 120 m long"),
    ("https://one.example/a", "opened on 3 May 1998 by “the mayor”"),
    ("https://two.example/b", "the toll rose to 4.50 euros"),
    ("https://two.example/b", "1.2 million cars crossed it"),
]


def ledger() -> list[EvidenceRow]:
    rows: list[EvidenceRow] = []
    for n, (url, quote) in enumerate(QUOTES, 1):
        found = find_quote(quote, PAGES[url])
        assert isinstance(found, QuoteFound)
        rows.append(row(f"e{n}", found.text, url=url))
    return rows


TRUE = ["120 m long", "on 3 May 1998", "“the mayor”", "4,50 Euro", "1.2 million", "৩ মে"]
FALSE = [
    *("121 m", "4 May 1998", "“the king”", "5.40 euros", "1.3 million", "№ 77", "777", "8 8 8"),
    *("0.12 km", "1,200,000 cars", "GPT-7", "७७", "第9章", "450"),
]
ODD = [
    *("\n", "\n\n", "- ", "1. ", "> ", "| ", " |", "## ", "```\n", '"', "“", "”", "„", "«", ". "),
    *(
        "! ",
        "e.g. ",
        " = ",
        "+",
        "(",
        ")",
        "[",
        "]",
        "](",
        "<",
        ">",
        "\u2028",
        "…",
        "*",
        "_",
        "---\n",
    ),
]
URLS = [
    *("https://one.example/a", "https://evil.example/x", "[a](https://evil.example)"),
    *("www.evil.example", "<https://evil.example>", "HTTP://EVIL.example"),
    *("[x]: https://evil.example", "evil.example/x"),
]
CITED = ["[e1]", "[e2]", "[e3, e4]", "[e1][e2]", "[e9]", "[E4]", "[12]", "[e1"]
PIECES = st.one_of(
    *(st.sampled_from(each) for each in (TRUE, FALSE, ODD, URLS, CITED)),
    st.sampled_from([" the bridge ", "It is ", ". ", " and "]),
    st.text(max_size=4),
)
REPORTS = st.lists(PIECES, max_size=40).map(lambda parts: " ".join(parts))
ADDRESS = re.compile(r"(?:https?:)?//[^\s)>\]\"“”„«|<`]+|www\.[^\s)>]+", re.IGNORECASE)


@pytest.mark.slow
@given(REPORTS)
def test_no_report_holds_an_address_number_or_quotation_that_the_pages_do_not(text: str) -> None:
    rows = ledger()
    kept, _ = enforce(text, rows)
    assert check_report(kept, rows) == []
    assert {url.rstrip(".,;:!?*_'…") for url in ADDRESS.findall(kept)} <= set(PAGES)
    shown = {"120", "3", "1998", "4.50", "4,50", "1.2", "1,2"}
    words = re.sub(r"(?m)^[ \t>]*\d+[.)] ", "", re.sub(r"\[e\d(?:, e\d)*\]", " ", kept, flags=re.I))
    for number in re.findall(r"\d+(?:[.,]\d+)*", words):
        assert "".join(str(int(c)) if c.isdigit() else c for c in number) in shown
    for said in re.findall(r"“([^“”\n]+)”", kept):
        assert any(isinstance(find_quote(said, page), QuoteFound) for page in PAGES.values()), said


@pytest.mark.slow
@given(REPORTS)
def test_striking_adds_no_words(text: str) -> None:
    kept, struck = enforce(text, ledger())
    assert not struck or len("".join(kept.split())) < len("".join(text.split()))


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(["It is 120 m long [e1].", "Es kostet 4,50 Euro [e3].", "It stands."]),
        max_size=5,
    )
)
def test_what_the_ledger_shows_is_never_struck(sentences: list[str]) -> None:
    text = " ".join(sentences)
    assert enforce(text, ledger()) == (f"{text}\n" if text else "", [])
