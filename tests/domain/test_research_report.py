"""The report for people: numbered sources, what is missing, and the files."""

import json
from typing import NamedTuple

from agiraph.features.research.model.report import Counts, render
from agiraph.features.research.model.sentences import with_paragraphs
from tests.domain.evidence_rows import row


class Brief(NamedTuple):
    question: str = "How tall is the tower?"
    language: str = "English"
    assumptions: tuple[str, ...] = ("The tower is the one in the city.",)


COUNTS = Counts(depth="standard", searches=3, pages=5, usd=0.125, engine="open")
LEDGER = [
    row("e1", "It is 300 m tall.", url="https://b.example/x", title="Old * tower"),
    row(
        "e2", "It is 330 m tall.", url="https://www.a.example/", title="Tower", source_class="press"
    ),
    row("e3", "330 m", url="https://b.example/x", title="Old * tower"),
    row(
        "e4",
        "330 m high",
        url="https://gov.example/",
        title="[Law](//evil.example/x)",
        published="at evil.example/y",
        source_class="primary",
    ),
    row("e5", "unused", url="https://unused.example/"),
]
TEXT = """## Summary

The tower is 330 m tall [e2, e3].
It was 300 m [e1].

- It is 330 m high [e2].
  It is so by day [e2].
- It is 330 m high by law [e4].
"""


def test_sources_are_numbered_in_the_order_of_their_use() -> None:
    """Nothing is said to be confirmed beside "one source": the list of sources leaves it
    out where an item has that source alone, and each mark knows it of its own claim."""
    report = render(
        Brief(),
        TEXT,
        LEDGER,
        COUNTS,
        groups={"e1": 1, "e2": 2, "e3": 1, "e4": 4, "e5": 5},
        struck=["It weighs 7 tons [e9]."],
        missing=["The weight, see https://evil.example/w"],
    )
    assert (
        report.markdown
        == """## Summary

The tower is 330 m tall [1][2]. It was 300 m [2].

- It is 330 m high [1]. (one source) It is so by day [1]. (one source)
- It is 330 m high by law [3].

## What could not be found

- The weight, see …

## Assumptions

- The tower is the one in the city.

## Sources

1. Tower: a.example, read 2026-11-17, press. <https://www.a.example/>
2. Old \\* tower: b.example, read 2026-11-17, unrated site, confirmed by another source. <https://b.example/x>
3. \\[Law\\](…): gov.example, published at …, read 2026-11-17, primary source, single source. <https://gov.example/>

## How this was made

3 searches (open), 5 pages read, 3 sources with 5 quotations, $0.12, depth standard. \
Sentences left out, because no source shows them: 1.
"""
    )
    made = json.loads(report.sources_json)
    assert [(s["number"], s["evidence"]) for s in made["sources"]] == [
        (1, ["e2"]),
        (2, ["e1", "e3"]),
        (3, ["e4"]),
    ]
    assert made["citations"] == [
        {"number": 1, "evidence": ["e2"], "confirmed": True},
        {"number": 2, "evidence": ["e3"], "confirmed": True},
        {"number": 2, "evidence": ["e1"], "confirmed": False},
        {"number": 1, "evidence": ["e2"], "confirmed": False},
        {"number": 1, "evidence": ["e2"], "confirmed": False},
        {"number": 3, "evidence": ["e4"], "confirmed": False},
    ]
    assert [json.loads(line)["id"] for line in report.evidence_jsonl.splitlines()] == [
        "e1",
        "e2",
        "e3",
        "e4",
        "e5",
    ]


def test_the_frame_is_in_the_language_of_the_report() -> None:
    stopped = Counts(depth="quick", searches=1, pages=0, usd=None, stopped="Kein Geld mehr.")
    german = render(Brief(language="german", assumptions=()), "Nichts gefunden.", [], stopped)
    assert german.markdown == (
        "Nichts gefunden.\n\n## Was nicht zu finden war\n\n- Kein Geld mehr.\n\n"
        "## Wie dieser Bericht entstand\n\n"
        "1 Suche, 0 Seiten gelesen, 0 Quellen mit 0 Zitaten, Kosten unbekannt, Tiefe quick.\n"
    )
    assert "## Sources" in render(Brief(language="Klingon"), "So [e1].", LEDGER, COUNTS).markdown


def test_the_sentences_of_a_paragraph_stand_side_by_side() -> None:
    text = (
        "## A\nIt is [e1].\nSo it is.\nAnd\nmore.  \nA break.\n\n- One [e2].\n- Two [e2].\n\n"
        "高い[e1]。\n古い[e2]。\n\n> Said [e1].\n> Again [e1].\n\n```\nx.\ny.\n```\n"
    )
    assert with_paragraphs(text) == (
        "## A\nIt is [e1]. So it is. And\nmore.  \nA break.\n\n- One [e2].\n- Two [e2].\n\n"
        "高い[e1]。古い[e2]。\n\n> Said [e1].\n> Again [e1].\n\n```\nx.\ny.\n```\n"
    )
