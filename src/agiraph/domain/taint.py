"""Taint: where words come from that nobody on the team vouches for.

It is a few words of plain text: an address, "a web search", "the program make". What a tainted
thread says is tainted by the same; a person's word is not.
"""

from urllib.parse import urlsplit

SEARCH = "a web search"
_PROGRAM = "the program "
LONGEST = 200


def by_page(url: str) -> str:
    """Return the site of a page, without the path: a page could put a message into its address."""
    return f"a page of {urlsplit(url).hostname or 'the web'}"[:LONGEST]


def by_program(name: str) -> str:
    return f"{_PROGRAM}{name}"[:LONGEST]


def is_foreign(source: str | None) -> bool:
    """Whether strangers wrote it; a program that works for the team is none, nor is it a member."""
    return source is not None and not source.startswith(_PROGRAM)


def graver(one: str | None, other: str | None) -> str | None:
    """Of two sources the one to be more careful of."""
    return other if one is None or (not is_foreign(one) and is_foreign(other)) else one
