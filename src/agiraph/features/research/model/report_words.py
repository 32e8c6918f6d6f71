"""Report words: the headings and short phrases of a report's frame, in several languages.

The phrases are in `report_words.toml`, a table for the code of each language.
"""

import tomllib
from functools import cache
from importlib import resources
from typing import get_args

from pydantic import TypeAdapter

from agiraph.core.domain.value import value
from agiraph.core.domain.work import StopReason
from agiraph.features.research.model.jobs import SourceClass

_LIMITS = (
    StopReason.MONEY_SPENT,
    StopReason.TOKENS_SPENT,
    StopReason.TIME_SPENT,
    StopReason.CALLS_SPENT,
    StopReason.TURNS_SPENT,
)


@value
class ReportPhrases:
    names: tuple[str, ...]
    """The names of the language, in English and its own."""
    sources: str
    missing: str
    assumptions: str
    struck: str
    """With the place {count}."""
    effort: str
    published: str
    read: str
    one_source: str
    single: str
    confirmed: str
    unchecked: str
    no_price: str
    """In place of the cost, if no price is known."""
    classes: tuple[str, str, str, str, str, str]
    """A primary, reference, press, vendor, forum and unrated source, in this order."""
    new_since: str
    """With the place {date}."""
    counts: str
    """With the places {searches}, {pages}, {sources}, {quotes}, {cost} and {depth}."""
    nouns: tuple[tuple[str, str], tuple[str, str], tuple[str, str], tuple[str, str]]
    """One and several searches, pages that were read, sources and quotations, in this order."""
    zero_is_singular: bool = False

    nothing: str
    """For a job without any evidence."""
    no_news: str
    no_page: str
    """For a repeated question whose job could read no page."""
    not_written: str
    stopped: str
    """With the place {reason}, which is one of `limits`."""
    limits: tuple[str, str, str, str, str]
    """Money, tokens, time, searches and pages, and turns are used up, in this order."""
    wanted_more: str
    """Said of a reader that had no searches or pages left."""
    no_model: str
    """Said of a reader whose model refuses to work."""
    failed: str
    """Said of a reader that ended for any other reason."""
    not_used: str
    """For a report that could not be written again after a message of a person."""
    compared: str
    """With the places {done} and {all}."""

    def of_limit(self, reason: StopReason) -> str:
        """Return why a job ended early; the runtime's own words if no limit was used up."""
        return self.limits[_LIMITS.index(reason)] if reason in _LIMITS else reason.words

    def of_reader(self, reason: StopReason) -> str:
        """Return why a reader ended before it was done."""
        if reason is StopReason.MODEL_REFUSED:
            return self.no_model
        return self.of_limit(reason) if reason in _LIMITS else self.failed

    def count(self, counts: tuple[int, int, int, int]) -> tuple[str, ...]:
        """Return how many searches, pages, sources and quotations there are, with their nouns."""
        are_one = [n == 1 or (n == 0 and self.zero_is_singular) for n in counts]
        return tuple(
            f"{n} {one if is_one else several}"
            for n, is_one, (one, several) in zip(counts, are_one, self.nouns, strict=True)
        )

    def of_class(self, source: SourceClass) -> str:
        """Return the name of a class of sources."""
        return self.classes[get_args(SourceClass).index(source)]


@cache
def _by_code() -> dict[str, ReportPhrases]:
    folder = resources.files("agiraph.features.research.model")
    given = tomllib.loads(folder.joinpath("report_words.toml").read_text("utf-8"))
    return TypeAdapter(dict[str, ReportPhrases]).validate_python(given)


def english() -> ReportPhrases:
    return _by_code()["en"]


def words_of(language: str) -> ReportPhrases:
    """Return the words of a language, named in English or by its code; else those of English."""
    name = language.strip().lower()
    named = (words for words in _by_code().values() if name in words.names)
    return next(named, None) or _by_code().get(name[:2]) or english()
