"""Figures: reads the numbers in a text with their units, in the forms of several languages.

`1,234.5`, `1.234,5` and `1 234,5` are one number, and so are `1.2 million` and `1,200,000`. Where a
form can mean two numbers (`1.234`), both readings count.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from agiraph.domain import dates
from agiraph.domain.scripts import CASED

_SPACES = " \u00a0\u2009\u202f'\u2019"
_CAPITALS = "A-Z\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0410-\u042f"
_MOST_DIGITS = 60
"""The most digits of a number that is read; Python refuses to read very long ones."""
_DIGITS = re.compile(
    # The digits in a name (`A380`, `GPT-4`, `v1.2`) are not a figure.
    rf"(?<![{CASED}\d])(?<!\d[.,])(?<![{_CAPITALS}][-\u2010\u2011])(?P<sign>[-\u2212+]?)"
    r"(?P<money>(?:US\$|[$€£¥₹]|\b(?:EUR|USD|GBP|CHF|JPY)\b)\s?)?"
    rf"(?P<digits>\d{{1,3}}(?:[{_SPACES}]\d{{3}})+(?:[.,]\d+)?(?!\d|['.,]\d)|\d+(?:[.,]\d+)*"
    r"|(?<![\w.])\.\d+)"
)
_INSIDE = re.compile(r"\d+(?:[.,]\d+)*")
_END = rf"(?![{CASED}\d])"
_MAGNITUDES: tuple[tuple[str, int], ...] = (
    (r"billions?|bn|milliarden?|mrd\.?|milliards?|mil millones|miliard[oi]|miljard|bilh[õo]es", 9),
    (r"thousand|tausend|mille|mil|tsd\.?|mila", 3),
    (r"millions?|millionen|mio\.?|mill[oó]n(?:es)?|milion[ei]|milh[ãa]o|milh[õo]es|miljoen", 6),
    (r"trillions?|billionen|billón|billones", 12),
)
# A billion is 10⁹ in English and 10¹² in German, French and Spanish, so both readings count.
_LONG_SCALE = re.compile(r"billions?", re.I)
_MAGNITUDE = re.compile(
    r"\s?(?:" + "|".join(f"(?P<e{power}>{words})" for words, power in _MAGNITUDES) + ")" + _END,
    re.IGNORECASE,
)
_SHORT = re.compile(r"\s?(?:(?P<e3>k|K)|(?P<e6>M|m|mn)|(?P<e9>B|bn|b))" + _END)
"""Short forms, which mean this only behind a sum of money: `$5M`."""
_ADJOINED = re.compile(
    rf"(?:(?P<e3>k|K)|(?P<e6>M)){_END}"
    r"|\s?(?:(?P<e12>[万萬][亿億])|(?P<e8>[亿億억])|(?P<e6b>百[万萬])|(?P<e7>千[万萬])|(?P<e4>[万萬만])"
    r"|(?P<e3b>千(?![米克瓦]))|(?P<e2>百))"
)
"""Short forms right behind the digits (`30k`), and those of Chinese, Japanese and Korean."""
_UNITS: tuple[tuple[str, str, Fraction], ...] = (
    (r"%|percent|per cent|prozent|pour\s?cent|por\s?ciento|per\s?cento|pct\.?", "%", Fraction(1)),
    (r"percentage points?|prozentpunkte?n?|points? de pourcentage", "%", Fraction(1)),
    (r"‰|per mille|promille", "%", Fraction(1, 10)),
    (r"€|eur|euros?", "EUR", Fraction(1)),
    (r"(?:us-?)?\$|usd|(?:us[ -])?dollars?|d[oó]lares", "USD", Fraction(1)),
    (r"£|gbp|pounds sterling|pfund sterling", "GBP", Fraction(1)),
    (r"chf|swiss francs?|schweizer franken|francs suisses", "CHF", Fraction(1)),
    (r"¥|yen|jpy", "JPY", Fraction(1)),
    (r"mm|millimet(?:er|re)s?|milímetros?", "m", Fraction(1, 1000)),
    (r"cm|centimet(?:er|re)s?|zentimetern?|centímetros?|centimètres?", "m", Fraction(1, 100)),
    (r"km|kilomet(?:er|re)s?|kilometern?|kilómetros?|kilomètres?", "m", Fraction(1000)),
    (r"(?-i:m)|met(?:er|re)s?|metern?|mètres?|metros?", "m", Fraction(1)),
    (r"mg|milligrams?|milligramm", "g", Fraction(1, 1000)),
    (r"kg|kilograms?|kilogramm|kilos?|kilogrammes?|kilogramos?", "g", Fraction(1000)),
    (r"(?-i:g)|grams?|gramm|grammes?|gramos?", "g", Fraction(1)),
    (r"tonnes?|tonnen?|metric tons?|toneladas?", "g", Fraction(1_000_000)),
    (r"kb|kilobytes?", "B", Fraction(1000)),
    (r"mb|megabytes?", "B", Fraction(1000**2)),
    (r"gb|gigabytes?", "B", Fraction(1000**3)),
    (r"tb|terabytes?", "B", Fraction(1000**4)),
    (r"kw|kilowatts?", "W", Fraction(1000)),
    (r"(?-i:MW)|megawatts?", "W", Fraction(1000**2)),
    (r"gw|gigawatts?", "W", Fraction(1000**3)),
    (r"kwh|kilowatt[- ]?hours?|kilowattstunden?", "Wh", Fraction(1000)),
    (r"(?-i:MWh)|megawatt[- ]?hours?|megawattstunden?", "Wh", Fraction(1000**2)),
    (r"gwh|gigawatt[- ]?hours?|gigawattstunden?", "Wh", Fraction(1000**3)),
    (r"twh|terawatt[- ]?hours?|terawattstunden?", "Wh", Fraction(1000**4)),
    (r"°\s?c|degrees celsius|grad celsius|degrés celsius|grados celsius", "°C", Fraction(1)),
    (r"°\s?f|degrees fahrenheit", "°F", Fraction(1)),
    (r"ms|milliseconds?|millisekunden?", "s", Fraction(1, 1000)),
    (r"seconds?|sekunden?|secondes?|segundos?", "s", Fraction(1)),
    (r"minutes?|minuten|minutos?", "s", Fraction(60)),
    (r"hours?|stunden?|heures?|horas?", "s", Fraction(3600)),
    (r"days?|tagen?|tage|jours?|días?", "day", Fraction(1)),
    (r"weeks?|wochen?|semaines?|semanas?", "day", Fraction(7)),
    (r"months?|monaten?|monate|mois|mes(?:es)?", "month", Fraction(1)),
    (r"years?|jahren?|jahre|ans?|années?|años?", "month", Fraction(12)),
)
_UNIT = re.compile(
    r"\s?-?(?:" + "|".join(f"(?P<u{n}>{unit[0]})" for n, unit in enumerate(_UNITS)) + ")" + _END,
    re.IGNORECASE,
)
_SYMBOLS = {"US$": "USD", "$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}
_WORDS = (
    ("zero", "null", "zéro", "cero"),
    ("one", "eins"),
    ("two", "zwei", "deux", "dos"),
    ("three", "drei", "trois", "tres"),
    ("four", "vier", "quatre", "cuatro"),
    ("five", "fünf", "cinq", "cinco"),
    ("six", "sechs", "seis"),
    ("seven", "sieben", "sept", "siete"),
    ("eight", "acht", "huit", "ocho"),
    ("nine", "neun", "neuf", "nueve"),
    ("ten", "zehn", "dix", "diez"),
    ("eleven", "elf", "onze"),
    ("twelve", "zwölf", "douze", "doce"),
)
_SPELLED = {word: Fraction(n) for n, words in enumerate(_WORDS) for word in words}
_WORD = re.compile(r"(?<!\w)(?:" + "|".join(_SPELLED) + r")(?!\w)", re.IGNORECASE)


class Figure(NamedTuple):
    """A number of a text, with its unit if it has one that we know."""

    values: frozenset[Fraction]
    """What it may mean, in the unit as written."""
    unit: str
    factor: Fraction
    """How many base units the figure's unit is: 1,000 for km."""
    text: str
    start: int
    end: int

    def stands_for(self, other: "Figure") -> bool:
        """Whether the other figure says the same: the same value, in the same kind of unit if both
        have one."""
        if not self.values or not other.values:  # neither is a number, such as 1.2.3
            return self.text.strip() == other.text.strip()
        if not self.unit or not other.unit:
            return bool(self.values & other.values)
        mine = {value * self.factor for value in self.values}
        its = {value * other.factor for value in other.values}
        return self.unit == other.unit and bool(mine & its)


def find(text: str) -> Iterator[Figure]:
    """Yield the numbers that are written in digits, in their order."""
    for match in _DIGITS.finditer(text):
        yield _figure(text, match)


def _figure(text: str, match: re.Match[str]) -> Figure:
    values = set(readings(match["digits"]))
    end, money = match.end(), (match["money"] or "").strip()
    power = _MAGNITUDE.match(text, end) or (_SHORT.match(text, end) if money else None)
    power = power or _ADJOINED.match(text, end)
    if power is not None and power.lastgroup is not None:
        scale = int(power.lastgroup[1:].rstrip("b"))
        scales = {scale, 12} if _LONG_SCALE.search(power[0]) else {scale}
        values = {value * 10**each for value in values for each in scales}
        end = power.end()
    unit, factor = _SYMBOLS.get(money, money), Fraction(1)
    if not unit and (found := _UNIT.match(text, end)) and found.lastgroup is not None:
        _, unit, factor = _UNITS[int(found.lastgroup[1:])]
        end = found.end()
    if match["sign"] in ("-", "\u2212"):
        values = {-value for value in values}
    said = text[match.start() : end]
    return Figure(frozenset(values), unit, factor, said, match.start(), end)


def readings(digits: str) -> Iterator[Fraction]:
    """Yield what a number with separators may mean; nothing for one of very many digits."""
    if len(digits) > 2 * _MOST_DIGITS or sum(map(str.isdigit, digits)) > _MOST_DIGITS:
        return
    plain = re.sub(rf"[{_SPACES}]", "", digits)
    parts = re.split(r"[.,]", plain)
    marks = [c for c in plain if c in ".,"]
    is_grouped = all(len(part) == 3 for part in parts[1:]) and 1 <= len(parts[0]) <= 3
    if not marks:
        yield Fraction(plain)
    elif len(set(marks)) == 1:
        if is_grouped:
            yield Fraction("".join(parts))
        if len(marks) == 1:
            yield Fraction(".".join(parts))
    elif marks.count(marks[-1]) == 1 and len(set(marks[:-1])) == 1:
        yield Fraction(f"{''.join(parts[:-1])}.{parts[-1]}")


def find_all(text: str) -> Iterator[Figure]:
    """Yield every number that a text can be said to contain: those inside names, and small ones
    that it spells out."""
    whole: list[tuple[int, int]] = []
    for figure in find(text):
        whole.append((figure.start, figure.end))
        yield figure
    for match in _INSIDE.finditer(text):
        if not any(start <= match.start() < end for start, end in whole):
            values = frozenset(readings(match[0]))
            yield Figure(values, "", Fraction(1), match[0], match.start(), match.end())
    for match in _WORD.finditer(text):
        value = frozenset([_SPELLED[match[0].lower()]])
        unit, factor = "", Fraction(1)
        if (found := _UNIT.match(text, match.end())) and found.lastgroup is not None:
            _, unit, factor = _UNITS[int(found.lastgroup[1:])]
        yield Figure(value, unit, factor, match[0], match.start(), match.end())


def without_dates(text: str) -> str:
    """Return the text with each date as white space, so that its numbers are not read again."""
    for found in dates.find(text):
        blank = " " * (found.end - found.start)
        text = text[: found.start] + blank + text[found.end :]
    return text
