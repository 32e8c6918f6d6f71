"""Standing questions: only words that no earlier job has read are new."""

from datetime import UTC, datetime

from agiraph.features.research.verbs.standing_questions import difference, new_rows, only_new
from tests.domain.evidence_rows import row

OLD_PAGE = "The tower is 330 m tall. It opens at nine. Updated on Monday."
NEW_PAGE = "The tower is 330 m tall. It opens at ten. Updated on Tuesday."
URL = "https://one.example/page"


def test_words_that_stood_on_the_page_before_are_no_news() -> None:
    earlier = [row("e1", "The tower is 330 m tall.", url="https://old.example/x")]
    own = [
        row("e2", "The tower is 330 m tall", url="https://other.example/y"),  # noted before
        row("e3", "tower is 330 m tall.", url=URL),
        row("e4", "It opens at ten.", url=URL),
        row("e5", "A second tower is planned.", url="https://new.example/z"),
        row("e6", "Another sentence.", url="https://old.example/x"),  # the page has not changed
    ]
    found = new_rows(own, earlier, {URL: [OLD_PAGE]})
    assert [each.id for each in found] == ["e4", "e5"]


def test_a_report_keeps_the_sentences_with_new_evidence() -> None:
    text = (
        "It is tall [e1]. It opens at ten now [e1, e4].\n\n- Old [e1].\n- New [e5].\n\nSo it is.\n"
    )
    assert only_new(text, {"e4", "e5"}) == (
        "It opens at ten now [e1, e4].\n\n- New [e5].\n\nSo it is.\n"
    )


def test_the_difference_lists_the_new_words() -> None:
    fresh = [row("e4", "It opens\nat ten.")]
    since = datetime(2026, 11, 10, tzinfo=UTC)
    assert difference(fresh, since=since, language="German") == (
        "## Neu seit dem Bericht vom 2026-11-10\n\n- “It opens at ten.” [e4]\n"
    )
    linked = [row("e4", "See [us](https://evil.example/a) or <b>www.evil.example</b> [e9] now.")]
    assert difference(linked, since=since, language="").endswith(
        "- “See \\[us\\](…) or \\<b\\>…\\</b\\> \\[e9\\] now.” [e4]\n"
    )
    many = difference(fresh * 25, since=since, language="")
    assert many.endswith("- … (+5)\n")
