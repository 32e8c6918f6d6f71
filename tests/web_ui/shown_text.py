"""Shown text: what a page shows of an untrusted text, written independently of the page."""

import re

from agiraph.core.domain.text.visible import visible


def visible_text(text: str) -> str:
    """Return the text that a page shows, with invisible characters replaced."""
    return visible(text, keep="\n\t")


def argument_text(text: str) -> str:
    """Return the text that a page shows of an argument: what looks like something else, too."""
    for letter in ("\u2215", "\u037e", "\uff4d"):
        text = text.replace(letter, f"\ue000U+{ord(letter):04X}\ue001")
    # The Cyrillic letter between Latin ones; a whole word in Cyrillic stays.
    text = text.replace("\u0430pple", "\ue000U+0430\ue001pple")
    text = text.replace("p\u0430y", "p\ue000U+0430\ue001y")
    text = re.sub(r"(?m)[ \t]+$", _line_end, text)
    shown = visible_text(text)
    return shown.replace("\u27e8U+E000\u27e9", "\u27e8").replace("\u27e8U+E001\u27e9", "\u27e9")


def _line_end(found: re.Match[str]) -> str:
    runs = (one.group() for one in re.finditer(r" +|\t+", found.group()))
    return "".join(f"\ue000U+{ord(run[0]):04X}{_times(len(run))}\ue001" for run in runs)


def _times(count: int) -> str:
    return f"{chr(0xD7)}{count}" if count > 1 else ""
