"""Claims: what a reply to a person says has been done or counted, to be compared with what was."""

import re

_SPLIT = re.compile(r"(?<=[.!?。])\s+|\n")
_I_STOPPED = re.compile(
    r"\bi(?:['\u2019]ve| have)?(?: now| just)? (?:stopped|cancell?ed|aborted|halted|killed)\b"
    r"(?! \w+ing\b)"
    r"|\b(?:ich habe|habe ich) (?:\w+ ){0,6}(?:gestoppt|abgebrochen|angehalten)\b"
    r"|\bj['\u2019]ai (?:arr[êe]t[ée]|annul[ée])\b|\bhe (?:parado|detenido|cancelado)\b",
    re.IGNORECASE,
)
_IS_STOPPED = re.compile(
    r"\b(?:is|are|was|were|has been|have been) (?:now )?(?:stopped|cancell?ed|aborted|halted)\b"
    r"|\b(?:wurde|ist) (?:\w+ ){0,6}(?:gestoppt|abgebrochen|angehalten|beendet)\b"
    r"|^(?:stopped|cancell?ed|done, stopped|gestoppt|abgebrochen)\b",
    re.IGNORECASE,
)
_ASKS_TO_STOP = re.compile(
    r"\b(?:stop|cancel|abort|halt|kill|end|stopp|stoppe|abbrechen|beende|arr[êe]te|annule|para"
    r"|cancela|det[ée]n)\b",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|n['\u2019]t|never|nothing|nicht|nichts|pas|no)\b", re.IGNORECASE)
_ID = re.compile(r"\b(?:node|msg|agent|trigger)_[0-9a-z]{8,}\b")
_COUNT = re.compile(
    r"(?<![\w,.])(\d[\d,.]*+)"
    r"(?=\s*+(?:%|percent\b|(?:of (?:the )?\d+ )?(?:open |running |finished )?"
    r"(?:tasks?|results?|sources?|pages?|files?|workers?|reports?|steps?|searches|findings?"
    r"|prozent|aufgaben|ergebnisse|quellen|seiten|dateien)\b))",
    re.IGNORECASE,
)
SMALL = 20
"""The largest count that may come from counting what was shown."""
_NUMBER = re.compile(r"\d[\d,.]*")


def claims_to_have_stopped(text: str, *, asked: str = "") -> bool:
    """Whether a sentence of the text says that its author stopped work, and does not deny it.

    That something *was stopped* is a claim only if `asked`, the message that the text answers, asks
    to stop something: else it may be about anything.
    """
    is_asked = _ASKS_TO_STOP.search(asked) is not None
    sentences = (said.strip() for said in _SPLIT.split(text))
    return any(
        (_I_STOPPED.search(said) or (is_asked and _IS_STOPPED.search(said)))
        and not _NOT.search(said)
        for said in sentences
    )


def unfounded(text: str, seen: str) -> list[str]:
    """Return the ids and the counts of work in a text that stand nowhere in what its author saw."""
    ids = [found for found in _ID.findall(text) if found not in seen]
    counts = [found.rstrip(".,") for found in _COUNT.findall(text)]
    known = {found.rstrip(".,") for found in _NUMBER.findall(seen)}
    invented = [n for n in counts if n not in known and not _is_small(n)]
    return list(dict.fromkeys([*ids, *invented]))


def _is_small(count: str) -> bool:
    """Whether somebody who reads a list may have counted its lines."""
    return count.isdigit() and int(count) <= SMALL
