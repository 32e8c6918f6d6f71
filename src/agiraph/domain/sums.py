"""Sums: finds the calculations that a sentence shows, and computes them again."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from agiraph.domain.figures import Figure, find

_EQUALS = re.compile(r"[=≈]")
_OPERATOR = {"+": "+", "-": "-", "\u2212": "-", "\u2013": "-", "*": "*", "\u00d7": "*", "x": "*",
             "\u00b7": "*", "/": "/", "\u00f7": "/", ":": "/"}  # fmt: skip
_MOST_PARTS = 40


class Sum(NamedTuple):
    """A calculation that a sentence shows: `330 m - 300 m = 30 m`."""

    result: Figure
    operands: tuple[Figure, ...]
    is_right: bool
    text: str


def find_sums(text: str) -> Iterator[Sum]:
    """Yield the calculations of a text. The result may stand on either side of the equals sign."""
    figures = list(find(text))
    for sign in _EQUALS.finditer(text):
        left = _expression(text, figures, sign.start(), step=-1)
        right = _expression(text, figures, sign.end(), step=1)
        if len(_numbers(left)) > 1 and len(_numbers(right)) == 1:
            yield _sum(left, _numbers(right)[0], text)
        elif len(_numbers(right)) > 1 and len(_numbers(left)) == 1:
            yield _sum(right, _numbers(left)[0], text)


Part = Figure | str


def _numbers(parts: list[Part]) -> list[Figure]:
    return [part for part in parts if isinstance(part, Figure)]


def _expression(text: str, figures: list[Figure], place: int, step: int) -> list[Part]:
    """Return the numbers, operators and brackets beside an equals sign, in the text's order."""
    parts: list[Part] = []
    depth, opening = 0, "()"[::step][0]
    for _ in range(_MOST_PARTS):
        figure = next((f for f in figures if (f.start if step > 0 else f.end) == place), None)
        if figure is not None:
            last = parts[-1] if parts else None
            joint = _joint(last, figure) if step > 0 else _joint(figure, last)
            if joint is None:
                break
            parts += [*joint, figure]
            place = figure.end if step > 0 else figure.start
            continue
        index = place if step > 0 else place - 1
        if not 0 <= index < len(text):
            break
        mark = text[index]
        depth += 0 if mark not in "()" else 1 if mark == opening else -1
        if depth < 0:
            break  # the bracket around the calculation
        if mark in _OPERATOR or mark in "()":
            parts.append(_OPERATOR.get(mark, mark))
        elif not mark.isspace():
            break
        place += step
    parts = parts if step > 0 else parts[::-1]
    while parts and isinstance(parts[0], str) and parts[0] != "(":
        parts = parts[1:]
    return parts


def _joint(earlier: Part | None, later: Part | None) -> list[str] | None:
    """Return the operator to put between two neighbours: a plus before a number with its own sign,
    else nothing. None if two numbers stand side by side, so that one is the sentence's own."""
    if not isinstance(earlier, Figure) or not isinstance(later, Figure):
        return []
    return ["+"] if later.text[0] in "+-\u2212" else None


def _sum(parts: list[Part], result: Figure, text: str) -> Sum:
    operands = _numbers(parts)
    start = min(result.start, operands[0].start)
    end = max(result.end, operands[-1].end)
    is_scaled = _is_scaled(parts, [*operands, result])
    values = [value for value in _values(parts, bool(is_scaled)) if value is not None]
    values = [value / result.factor if is_scaled else value for value in values]
    is_right = is_scaled is not None and any(
        _is_rounded(value, wanted, result) for value in values for wanted in result.values
    )
    return Sum(result, tuple(operands), is_right, text[start:end])


def _is_scaled(parts: list[Part], figures: list[Figure]) -> bool | None:
    """Whether the numbers have to be converted to one unit before they are added or subtracted;
    None if they cannot be, so that the calculation says nothing."""
    if not all(figure.values for figure in figures):
        return None
    if not any(part in ("+", "-") for part in parts):
        return False
    units = [figure.unit for figure in figures]
    factors = {figure.factor for figure in figures if figure.unit and figure.unit != "%"}
    if not any(part in ("*", "/") for part in parts) and len({*units} - {""}) > 1:
        return None
    if len(factors) <= 1:
        return False
    is_ratio = any(part in ("*", "/") for part in parts)
    return True if is_ratio or all(units) else None


def _is_rounded(value: Fraction, wanted: Fraction, result: Figure) -> bool:
    """Whether the result is the computed value, rounded to as many digits as it shows."""
    decimals = re.search(r"[.,](\d+)(?!.*\d)", result.text.split(" ")[0])
    digits = len(decimals[1]) if decimals and wanted.denominator != 1 else 0
    scale = Fraction(1, 10**digits)
    if wanted and not digits:
        # `1.2 million` shows two digits; `330` shows all.
        shown = re.sub(r"\D", "", result.text) or "0"
        scale = max(scale, Fraction(abs(wanted)) / max(int(shown), 1))
    if result.unit == "%" and abs(value * 100 - wanted) <= scale / 2:
        return True
    return abs(value - wanted) <= scale / 2


def _values(parts: list[Part], is_scaled: bool) -> Iterator[Fraction | None]:
    """Yield the values of an expression: first with the smallest reading of each number, then with
    the largest; in base units if they are scaled."""
    for at in (0, -1):
        yield _Parser(
            [part if isinstance(part, str) else _reading(part, at, is_scaled) for part in parts]
        ).value()


def _reading(figure: Figure, at: int, is_scaled: bool) -> Fraction:
    if not figure.values:
        return Fraction(0)
    return sorted(figure.values)[at] * (figure.factor if is_scaled else 1)


class _Parser:
    """Computes an expression of numbers, `+ - * /` and brackets."""

    def __init__(self, parts: list[Fraction | str]) -> None:
        self._parts = _balanced(parts)
        self._place = 0

    def value(self) -> Fraction | None:
        try:
            found = self._added()
        except (IndexError, ZeroDivisionError, TypeError):
            return None
        return found if self._place == len(self._parts) else None

    def _next(self) -> Fraction | str | None:
        return self._parts[self._place] if self._place < len(self._parts) else None

    def _take(self) -> Fraction | str:
        self._place += 1
        return self._parts[self._place - 1]

    def _added(self) -> Fraction:
        found = self._multiplied()
        while self._next() in ("+", "-"):
            is_plus = self._take() == "+"
            other = self._multiplied()
            found = found + other if is_plus else found - other
        return found

    def _multiplied(self) -> Fraction:
        found = self._single()
        while self._next() in ("*", "/"):
            is_times = self._take() == "*"
            other = self._single()
            found = found * other if is_times else found / other
        return found

    def _single(self) -> Fraction:
        part = self._take()
        if part == "(":
            found = self._added()
            if self._take() != ")":
                raise TypeError("a bracket is not closed")
            return found
        if isinstance(part, str):
            raise TypeError("a number is missing")
        return part


def _balanced(parts: list[Fraction | str]) -> list[Fraction | str]:
    """Remove unmatched brackets, which belong to the sentence around the expression."""
    kept = list(parts)
    while kept.count("(") > kept.count(")") and kept[0] == "(":
        kept = kept[1:]
    while kept.count(")") > kept.count("(") and kept[-1] == ")":
        kept = kept[:-1]
    return kept
