"""Superlatives: finds a word that claims the top or the bottom of a ranking, such as "largest"."""

import re

_ENGLISH = (
    "largest biggest smallest highest lowest longest shortest tallest oldest newest youngest "
    "fastest slowest cheapest priciest earliest latest strongest weakest richest poorest best "
    "worst greatest fewest deepest heaviest lightest hottest coldest safest closest nearest "
    "busiest easiest hardest widest thinnest quickest wealthiest deadliest"
)
_GERMAN = (
    "größte kleinste höchste niedrigste längste kürzeste älteste neueste neuste jüngste "
    "schnellste langsamste billigste günstigste teuerste früheste späteste stärkste schwächste "
    "reichste ärmste beste schlechteste schlimmste wenigste meiste tiefste schwerste leichteste "
    "heißeste kälteste sicherste nächstgelegene einfachste wichtigste bekannteste häufigste"
)
_FORMS = (
    rf"\b(?:{'|'.join(_ENGLISH.split())})\b",
    r"\b(?<!at )(?:most|least) (?!of\b|people\b)[a-z]{3,}\b",
    rf"\b(?:{'|'.join(_GERMAN.split())})[nrsm]?\b",
    r"\bam \w{3,}sten\b",
    r"\b(?:le|la|les) (?:plus|moins) \w{3,}\b",
    r"\b(?:le|la|les) (?:meilleur|pire)e?s?\b",
    r"\b(?:el|la|los|las|lo) (?:más|menos) \w{3,}\b",
    r"\b(?:el|la|los|las) (?:mejor|peor)(?:es)?\b",
    r"\b(?:el|la|los|las) \w+ (?:más|menos) \w{3,}\b",
)
_ANY = re.compile("|".join(_FORMS), re.IGNORECASE)


def superlative(text: str) -> str | None:
    """Return the first superlative of a text; None if it has none."""
    found = _ANY.search(text)
    return found[0] if found else None
