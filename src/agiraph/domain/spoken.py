"""Spoken: an agent's words as a person may read them, without thoughts and echoes of notices."""

import re

_THOUGHT = re.compile(
    r"<(think|thinking)>.*?</\1>|\A\s*<(?:think|thinking)>.*\Z", re.DOTALL | re.IGNORECASE
)
_MARK = re.compile(r"</?(?:think|thinking)>", re.IGNORECASE)
_NOTICE = re.compile(r"^[ \t]*\[(?:Runtime|Budget)\][^\n]*(?:\n|\Z)", re.MULTILINE)


def for_person(text: str) -> str:
    """Return the text without `<think>` blocks and without lines that repeat the runtime's
    notices. The text comes back unchanged if it holds neither."""
    if "[Runtime]" not in text and "[Budget]" not in text and "think" not in text:
        return text
    cleaned = _NOTICE.sub("", _MARK.sub("", _THOUGHT.sub("", text)))
    return text if cleaned == text else cleaned.strip()
