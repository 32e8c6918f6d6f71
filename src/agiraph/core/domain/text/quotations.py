"""Quotations: finds what a person quotes in a message, and checks that a passage is their own.

What a person types is theirs. A long passage that they mark as a quotation, between ``` lines or
with `>` at the beginning of each line, is somebody else's: a mail or a page that they pasted. So is
a quotation of any length that links to the message it is from, as the web UI's quotations do. An
agent that has read untrusted text may keep a passage as the person's only if it stands in the
person's own words to the letter.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.fence import enclose_foreign
from agiraph.core.domain.text.passages import is_unspaced, words
from agiraph.late_patterns import late

LONGEST_OWN = 600
"""Characters that a message may quote before the quoted words count as somebody else's."""
PASTED = Label(("file:pasted",))
FEWEST_WORDS = 3
"""Words of a passage. A shorter one stands in many messages and says nothing by itself."""
LONGEST_PASSAGE = 500

_CODE = late(r"[ \t]{0,3}(```+|~~~+)")
_MARKED = late(r"[ \t]{0,3}>")
_MESSAGE_LINK = late(r"[?&]at=(msg_[0-9a-z]+)")
_NODE_LINK = late(r"[?&]node=(node_[0-9a-z]+)")
# A name may hold pairs of parentheses, as `report%20(1).pdf` does. The possessive `++` and
# `*+` never try a shorter match: a hostile message could make the search take minutes.
_FILE_LINK = late(r"/t/(team_[0-9a-z]++)/files/((?:[^()\s?#]++|\([^()\s?#]*+\))++)")
_LINK = late(r"\\.|\[(?:\\.|[^\[\]\\])*+\]\(((?:[^()\s]++|\([^()\s]*+\))*+)\)")
_SENTENCE_END = late("[.!?…](?=\\s|$)|[\n\u3002\uff01\uff1f]")
_EDGES = " \t\n\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u300c\u300d"
"""White space and quotation marks that a model puts around a passage."""


class Part(NamedTuple):
    """Consecutive lines of a message."""

    text: str
    is_quoted: bool


def parts(text: str) -> list[Part]:
    """Split a message into the person's own lines and those that they quote.

    Everything is the person's own if the quoted lines have at most `LONGEST_OWN` characters and
    link to no message: words of a message have its author, however few they are.
    """
    found = _split(text)
    if not _is_long(found) and not quoted_messages(text):
        return [Part(text, is_quoted=False)]
    return found


def _split(text: str) -> list[Part]:
    found: list[Part] = []
    for line, is_quoted in _marked_lines(text):
        if found and found[-1].is_quoted == is_quoted:
            found[-1] = Part(f"{found[-1].text}\n{line}", is_quoted)
        else:
            found.append(Part(line, is_quoted))
    return found


def _is_long(found: Iterable[Part]) -> bool:
    return sum(len(part.text) for part in found if part.is_quoted) > LONGEST_OWN


def _marked_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is quoted; a fence belongs to what it encloses."""
    fence = ""
    for line in text.split("\n"):
        mark = _CODE.match(line)
        was_open = bool(fence)
        if mark is not None:
            fence = mark[1] if not fence else "" if line.strip().startswith(fence) else fence
        yield line, was_open or bool(fence) or _MARKED.match(line) is not None


def own_words(text: str) -> str:
    """Return a message without the words of others in it: quotations, and titles of nodes and names
    of files that the person refers to."""
    own = "\n".join(part.text for part in parts(text) if not part.is_quoted)
    return _LINK.sub(_without_title, own)


def _without_title(link: re.Match[str]) -> str:
    if link[1] is None:  # an escaped character: an escaped bracket begins no link
        return link[0]
    is_reference = _NODE_LINK.search(link[1]) or _FILE_LINK.search(link[1])
    return "" if is_reference else link[0]


def label_of(text: str) -> Label:
    """Return the label of a message's words: clean unless the person quotes a long passage. The
    caller knows the labels of `quoted_messages`."""
    return PASTED if _is_long(_split(text)) else CLEAN


def quoted_messages(text: str) -> list[str]:
    """Return the ids of messages that quoted lines link to, as the web UI's quotations do."""
    return [
        found[1]
        for line, is_quoted in _marked_lines(text)
        if is_quoted
        for found in _MESSAGE_LINK.finditer(line)
    ]


def named_nodes(text: str) -> list[str]:
    """Return the ids of nodes that a message links to: the web UI writes the title of each."""
    return _NODE_LINK.findall(text)


def named_files(text: str) -> list[tuple[str, str]]:
    """Return the team and the path of each file that a message links to, as the web UI's references
    do: an agent or a stranger may have chosen the file's name."""
    return [(team, unquote(path)) for team, path in _FILE_LINK.findall(text)]


def enclose_quoted(text: str, *, thread: str, longest: int | None = None) -> str:
    """Return a person's message for a prompt: their own words as they are, others' in a fence.

    With `longest`, only so many characters of the message are shown.
    """
    shown: list[str] = []
    room = len(text) if longest is None else longest
    for part in parts(text):
        said = part.text if len(part.text) <= room else part.text[: max(room, 0)] + "…"
        room -= len(part.text)
        if part.is_quoted:
            said = enclose_foreign(said, thread=thread, source="a quotation in the message")
        shown.append(said)
        if room < 0:
            break
    return "\n".join(shown)


def find(passage: str, said: Iterable[str]) -> str | None:
    """Return the whole sentences of a passage in one of these messages of a person; None if it does
    not stand there.

    The passage has to stand there word for word; white space and capital letters may differ, and
    the person's spelling is returned.
    """
    passage = " ".join(passage.strip(_EDGES).split())
    if len(passage) > LONGEST_PASSAGE or len(words(passage)) < FEWEST_WORDS:
        return None
    pattern = r"\s+".join(map(re.escape, passage.split(" ")))
    before = "" if is_unspaced(passage[0]) or not passage[0].isalnum() else r"(?<!\w)"
    after = "" if is_unspaced(passage[-1]) or not passage[-1].isalnum() else r"(?!\w)"
    exact = re.compile(f"{before}{pattern}{after}", re.IGNORECASE)
    for text in said:
        for part in parts(text):
            if not part.is_quoted and (match := exact.search(part.text)) is not None:
                return _sentence(part.text, match)
    return None


def _sentence(text: str, match: re.Match[str]) -> str | None:
    """Return the sentences around a match: a part of one may say the opposite."""
    start = max((end.end() for end in _SENTENCE_END.finditer(text, 0, match.start())), default=0)
    # The match may have the mark at its end already.
    end = _SENTENCE_END.search(text, match.end() - 1)
    found = " ".join(text[start : len(text) if end is None else end.end()].split())
    return found if len(found) <= LONGEST_PASSAGE else None


def is_same(one: str, other: str) -> bool:
    """Whether two texts have the same words in the same order."""
    return words(one) == words(other)
