"""Spoken: an agent's words to people, without reasoning and copied parts of the prompt, and whether
they end with a question mark, in any script."""

import re
import unicodedata

from agiraph.core.domain.text.fence import without_marks
from agiraph.late_patterns import late

MARKS = "?\u037e\u055e\u061f\u1367\u2047\u2048\u2049\u203d\u2e2e\ua60f\ua6f7\ufe16\ufe56\uff1f"
"""Question marks of Latin and Greek, Armenian, Arabic, Ethiopic, Vai, Bamum and Chinese text, and
those that stand for two marks."""
_BEHIND = " \t\r\n*_`~\"'\u2019\u201d\u00bb\u300d\u300f)]}\uff09"
"""What may stand behind the last mark: emphasis, and the end of a quotation or of brackets."""

_PICTURES = frozenset({"So", "Sk", "Mn", "Me", "Cf"})
"""The categories of emoji, and of the characters that join and vary them."""


def ends_in_question(text: str) -> bool:
    """Whether the last character of a text is a question mark, apart from pictures behind it."""
    end = len(text)
    while end and (text[end - 1] in _BEHIND or unicodedata.category(text[end - 1]) in _PICTURES):
        end -= 1
    return text[:end].endswith(tuple(MARKS)) or _is_greek_mark(text[:end])


def _is_greek_mark(text: str) -> bool:
    """Whether a text ends with the semicolon that is the question mark behind Greek letters."""
    before = text[:-1].rstrip()
    return text.endswith(";") and unicodedata.name(before[-1:] or " ", "").startswith("GREEK ")


_THOUGHT = late(
    r"<(think|thinking)>.*?</\1>|\A\s*<(?:think|thinking)>.*\Z", re.DOTALL | re.IGNORECASE
)
_MARK = late(r"</?(?:think|thinking)>", re.IGNORECASE)
_NOTICE = late(r"^[ \t]*\[(?:Runtime|Budget)\][^\n]*(?:\n|\Z)", re.MULTILINE)


def for_person(text: str) -> str:
    """Return the text without `<think>` blocks and without lines that repeat the runtime's
    notices or the marks of a fence. The text comes back unchanged if it holds none of them."""
    cleaned = without_marks(text)
    if "[Runtime]" in text or "[Budget]" in text or "think" in text:
        cleaned = _NOTICE.sub("", _MARK.sub("", _THOUGHT.sub("", cleaned)))
    return text if cleaned == text else cleaned.strip()
