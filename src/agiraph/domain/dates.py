"""Dates: reads the dates in a text, in the forms of several languages."""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from agiraph.domain.scripts import CASED

_MONTHS = (
    "january jan januar jänner janvier janv enero ene gennaio janeiro januari",
    "february feb februar feber février fevrier févr fevr febrero febbraio fevereiro februari",
    "march mar märz maerz mrz mars marzo março maart mrt",
    "april apr avril avr abril abr aprile",
    "may mai mayo maggio maio mei",
    "june jun juni juin junio giugno giu junho",
    "july jul juli juillet juil julio luglio lug julho",
    "august aug août aout agosto augustus",
    "september sep sept septembre septiembre settembre setembro",
    "october oct oktober okt octobre octubre ottobre ott outubro",
    "november nov novembre noviembre novembro",
    "december dec dezember dez décembre decembre déc diciembre dic dicembre dezembro",
)


def _unaccented(word: str) -> str:
    plain = unicodedata.normalize("NFD", word.casefold())
    return "".join(c for c in plain if not unicodedata.combining(c))


_NUMBERS = {
    _unaccented(name): month + 1 for month, names in enumerate(_MONTHS) for name in names.split()
}
_NAME = "|".join(
    sorted({name for names in _MONTHS for name in names.split()} | set(_NUMBERS), key=len)[::-1]
)
_YEAR = r"(?:1\d|20|21)\d\d"
_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_NUMBER = r"(?:1[0-2]|0?[1-9])"
_EDGE = rf"(?<![{CASED}\d/:-])(?<!\d[.,])", rf"(?![{CASED}\d/:]|[.,-]\d)"
_FORMS = re.compile(
    rf"""{_EDGE[0]}(?:
      (?P<y1>{_YEAR})-(?P<m1>0[1-9]|1[0-2])(?:-(?P<d1>0[1-9]|[12]\d|3[01]))?(?:T[\d:.]+Z?)?
    | (?P<d2>{_DAY})(?:\.|er|st|nd|rd|th|º|°)?\s*+(?:of\s++|de\s++|-)?
        (?P<m2>{_NAME})\b\.?(?:\s*+(?:,\s*+)?(?:de\s++|del\s++)?(?P<y2>{_YEAR}))?
    | (?P<m3>{_NAME})\b\.?\s+(?P<d3>{_DAY})(?:st|nd|rd|th)?(?:(?:\s*+,)?\s++(?P<y3>{_YEAR}))?
    | (?P<m4>{_NAME})\b\.?\s*+(?:,\s*+)?(?:de\s++|del\s++)?(?P<y4>{_YEAR})
    | (?P<d5>{_DAY})(?P<s5>[./-])(?P<m5>{_NUMBER})(?P=s5)(?P<y5>{_YEAR})
    | (?P<m6>{_NUMBER})/(?P<d6>{_DAY})/(?P<y6>{_YEAR})
    ){_EDGE[1]}
    | (?P<y7>\d{{4}})\s*+[年년]\s*+(?:(?P<m7>{_NUMBER})\s*+[月월](?:\s*+(?P<d7>{_DAY})\s*+[日일])?)?
    """,
    re.IGNORECASE | re.VERBOSE,
)


class Date(NamedTuple):
    """A date as a text gives it; 0 for what it does not say."""

    year: int
    month: int
    day: int

    def is_in(self, other: "Date") -> bool:
        """Whether the other date says at least all that this one says."""
        return all(mine in (0, its) for mine, its in zip(self, other, strict=True))


class FoundDate(NamedTuple):
    readings: tuple[Date, ...]
    """What it may mean: `03/05/2024` is a day of March or of May."""
    start: int
    end: int


def find(text: str) -> Iterator[FoundDate]:
    """Yield the dates of a text that name a month, in their order."""
    for match in _FORMS.finditer(text):
        form = next(
            name[1:] for name, part in match.groupdict().items() if part and name[0] in "ym"
        )
        year, month = _number(match, "y", form), match.groupdict().get(f"m{form}") or "0"
        number = int(month) if month.isdigit() else _NUMBERS[_unaccented(month.rstrip("."))]
        day = _number(match, "d", form)
        readings = [Date(year, number, day)]
        if form in "56" and day <= 12 and match.groupdict().get("s5") != ".":
            readings.append(Date(year, day, number))
        yield FoundDate(tuple(dict.fromkeys(readings)), match.start(), match.end())


def _number(match: re.Match[str], part: str, form: str) -> int:
    return int(match.groupdict().get(f"{part}{form}") or 0)
