"""Promising: tell whether words to a person promise work, and whether they name a time for it."""

import re

LONGEST_READ = 100_000
"""Characters of a text that are searched: a person reads no more of a longer one."""
_WORK = re.compile(
    r"\b(?:i['\u2019]?ll|i will|i['\u2019]?m going to|i am going to|let me|we['\u2019]?ll|we will)"
    r"\s+"
    r"(?:now |just |also |gladly |happily |quickly |immediately |then )*"
    r"(?!not\b|never\b|know\b|remember\b|keep\b|bear\b|let you\b|explain\b|"
    r"be (?:here|there|around|happy|glad|ready|available)\b|"
    r"say\b|repeat\b|clarify\b|note that\b|miss\b|wait\b|stop\b)[a-z]"
    r"|\b(?:i['\u2019]?m|i am|we['\u2019]?re) "
    r"(?:on it|working on|getting (?:to work|started)|starting)"
    r"|\b(?:right away|straight away|on it!|consider it done)"
    r"|\bich (?:werde|mache|erledige|kümmere|fange|beginne|schicke|schreibe|prüfe|schaue)\b"
    r"|\bwird (?:sofort |gleich )?(?:erledigt|gemacht)\b"
    r"|\bje (?:vais|ferai|m['\u2019]en occupe|m['\u2019]y mets)\b"
    r"|\b(?:voy a|lo haré|haré|me pongo)\b|\b(?:vou|farei|lo farò|farò|ci penso)\b"
    r"|(?:我会|我這就|我这就|马上|馬上)|(?:します|やります)|(?:하겠습니다|할게요)|\b(?:сделаю|займусь)\b",
    re.IGNORECASE,
)
_LETS_KNOW = re.compile(r"\blet me know\b", re.IGNORECASE)
_TIME = re.compile(
    r"\b(?:by|until|before|at|around|bis|um|gegen|avant|vers|antes de|a las)\s+"
    r"(?:\d{1,2}(?:[:.h]\d{2})?\s*(?:am|pm|a\.m\.|p\.m\.|o['\u2019]?clock|uhr|h|utc)?\b"
    r"|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon|midnight)\b"
    r"|(?:tomorrow|tonight|monday|tuesday|wednesday|thursday|friday|saturday|sunday|morgen|"
    r"montag|dienstag|mittwoch|donnerstag|freitag|demain|mañana|the end of|next week)\b)"
    r"|\b(?:in|within)\s+(?:an?|\d+|half an|two|three|a few)\s+(?:minutes?|hours?|days?|weeks?)\b"
    r"|\b(?:in|innerhalb von)\s+(?:einer|\d+|zwei|drei)\s+(?:minuten?|stunden?|tagen?|wochen?)\b"
    r"|\b(?:tomorrow|tonight|this (?:afternoon|evening)|next week|morgen früh|heute abend)\b",
    re.IGNORECASE,
)


def promises_work(text: str) -> bool:
    """Whether a reply to a person promises work, such as "I'll do it right away"."""
    return _WORK.search(_LETS_KNOW.sub("", text)) is not None


def promises_by_a_time(text: str) -> bool:
    """Whether one sentence of the text both promises something and names a time."""
    sentences = re.split(r"(?<=[.!?。])\s+|\n", text[:LONGEST_READ])
    return any(promises_work(said) and _TIME.search(said) for said in sentences)
