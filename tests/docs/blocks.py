"""Blocks: the code blocks of a document, as the files that its reader would write."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"# (\S+\.py)\n")


def blocks(document: str, language: str) -> list[str]:
    """Return the code blocks of a document in this language."""
    text = (DOCS / document).read_text()
    return [body for kind, body in _BLOCK.findall(text) if kind == language]


def python_files(document: str) -> dict[str, str]:
    """Return the Python files of a document by the path that their first line names."""
    found = [(_PLACE.match(body), body) for body in blocks(document, "python")]
    return {place[1]: body for place, body in found if place is not None}


def markdown_file(document: str) -> str:
    """Return the only Markdown file of a document."""
    [body] = blocks(document, "markdown")
    return body
