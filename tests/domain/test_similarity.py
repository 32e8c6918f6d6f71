"""Similarity: which statements are merged, which contradict each other, which are independent."""

import pytest

from agiraph.domain.similarity import Verdict, compare

CASES: list[tuple[str, str, Verdict]] = [
    # The same statement, perhaps in other words.
    ("SEC filings are reliable.", "SEC filings are reliable", "less"),
    ("sec  filings ARE reliable!", "SEC filings are reliable", "less"),
    ("Are SEC filings reliable", "SEC filings are reliable", "same"),
    ("User prefers concise responses", "The user prefers a concise response", "same"),
    (
        "User prefers concise responses in the morning",
        "User prefers concise responses",
        "same",
    ),
    ("User prefers concise responses", "User prefers concise responses with tables", "less"),
    (
        "NVIDIA reports earnings on the last Wednesday of February",
        "NVIDIA reports earnings in February",
        "same",
    ),
    # Both cannot be true.
    ("User lives in Paris", "User lives in Berlin", "opposed"),
    ("User does not like long answers", "User likes long answers", "opposed"),
    ("User doesn\u2019t like long answers", "User likes long answers", "opposed"),
    ("NVIDIA reports earnings in March", "NVIDIA reports earnings in February", "opposed"),
    ("The API limit is 60 calls a minute", "The API limit is 600 calls a minute", "opposed"),
    ("SEC filings are unreliable sources", "SEC filings are reliable sources", "opposed"),
    ("Volatility decreases before earnings", "Volatility increases before earnings", "opposed"),
    ("User prefers coffee over tea", "User prefers tea over coffee", "opposed"),
    # Two independent statements.
    ("AMD reports earnings in February", "NVIDIA reports earnings in February", "other"),
    ("AMD reports earnings in March", "NVIDIA reports earnings in February", "other"),
    ("User's name is Ada", "User's cat is Ada", "other"),
    ("Fact 1", "Fact 2", "other"),
    ("Check SEC filings first", "Tech stocks are volatile in Q1", "other"),
    (
        "Alpha sells chips to phone makers in Asia, Europe and America every single year",
        "Omega sells chips to phone makers in Asia, Europe and America every single year",
        "other",
    ),
    ("模型在周三发布", "完全不同的句子", "other"),
    ("🚀", "🎉", "other"),
    ("the", "of", "other"),
]


@pytest.mark.parametrize(("new", "old", "verdict"), CASES)
def test_two_statements_are_the_same_opposed_or_other(new: str, old: str, verdict: Verdict) -> None:
    assert compare(new, old) == verdict


@pytest.mark.parametrize(("new", "old", "verdict"), CASES)
def test_opposed_and_other_are_symmetric(new: str, old: str, verdict: Verdict) -> None:
    if verdict in ("opposed", "other"):
        assert compare(old, new) == verdict
