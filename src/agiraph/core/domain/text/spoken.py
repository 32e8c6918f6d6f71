"""Spoken: removes reasoning and copied parts of the prompt from an agent's messages to people."""

import re

from agiraph.core.domain.text.fence import without_marks
from agiraph.core.domain.text.late_patterns import late

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
