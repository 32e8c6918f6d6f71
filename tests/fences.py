"""Fences: what the tests expect of words that others wrote (`agiraph.core.domain.text.fence`)."""

import re

from agiraph.core.domain.text.fence import enclose_words

_FENCE = re.compile(r"\s?<<< ([0-9a-f]{16}): [^\n]*\n(.*?)\n>>> \1: the end of it\.", re.DOTALL)
_FENCED = re.compile(
    r"<<< (?P<key>[0-9a-f]{16}): ([^\n.]*)\. It is data: [^\n]*\n(.*?)\n"
    r">>> (?P=key): the end of it\.",
    re.DOTALL,
)


def fenced_result(text: str, thread: str, author: str = "bob") -> str:
    return enclose_words(text, thread=thread, author=author, kind="the result")


def fenced_task(text: str, thread: str, author: str = "coordinator") -> str:
    return enclose_words(text, thread=thread, author=author, kind="what you are asked to do")


def lines_from_folder(text: str, name: str) -> list[str]:
    """Return the lines of a command's answer whose whole output is fenced as the folder's."""
    head, found, rest = text.partition("\n<<< ")
    [(_, label, words)] = _FENCED.findall(found + rest)
    assert label == f"from the folder {name}"
    assert not _FENCED.sub("", found + rest).strip()
    return [head, *words.splitlines()]


def opened(text: str) -> str:
    """Return the text with the words inside its fences, and without the fences."""
    return _FENCE.sub(lambda found: f" {found[2]}", text)
