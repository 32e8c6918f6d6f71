"""Scripts: which letters have capital forms, and which stand in words that spaces divide."""

CASED = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0370-\u03ff\u0400-\u052f\u0531-\u0587"
    "\u1e00-\u1fff"
)
"""Letters with capital and small forms, for a class of a regular expression: Latin, Greek, Cyrillic
and Armenian. A digit right behind one belongs to a name (`A380`); a digit behind a letter of
another script (`高500米`) is a number of its own."""

_WITHOUT_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x109F),  # Tibetan, Burmese
    (0x1100, 0x11FF),  # Korean, whose particles are written onto the word
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x9FFF),  # Chinese, Japanese
    (0xAC00, 0xD7FF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFFDC),
    (0x20000, 0x3FFFF),
)


def is_spaced(letter: str) -> bool:
    """Whether a character is a letter of a script that puts spaces between words."""
    if not letter.isalpha():
        return False
    return not any(first <= ord(letter) <= last for first, last in _WITHOUT_SPACES)
