"""Front matter: the settings at the beginning of a Markdown file, and the text after them.

Files of specialists and skills have it. People copy such files from the internet, so parsing one
creates no objects but text, numbers, lists and dictionaries.
"""

import re
from typing import Any, cast

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.text.late_patterns import late

_FRONT = late(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL)
_ENTRIES = late(
    r"^(?=(?:name|description|tools|model|effort|color|examples|when_not_to_use|license|"
    r"allowed-tools|metadata):)",
    re.MULTILINE,
)


def split(text: str) -> tuple[dict[str, Any], str]:
    """Return the settings and the text after them, or raise `Refused` without settings."""
    match = _FRONT.match(text)
    if match is None:
        raise Refused("it does not begin with front matter between two lines of ---.")
    return _front_matter(match[1]), match[2].strip()


def _front_matter(text: str) -> dict[str, Any]:
    """Parse YAML; if that fails, as with colons in a description, parse entry by entry."""
    if (whole := _yaml(text)) is not None:
        return whole
    about: dict[str, Any] = {}
    for entry in _ENTRIES.split(text):
        key, _, value = entry.partition(":")
        about |= _yaml(entry) or {key: value.strip().replace("\\n", "\n")}
    return about


def _yaml(text: str) -> dict[str, Any] | None:
    import yaml

    try:
        # People copy these files from the internet: `safe_load` creates no Python objects. Deep
        # nesting makes the parser recurse.
        read = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: an invalid date
        return None
    return cast(dict[str, Any], read) if isinstance(read, dict) else None
