"""Front matter: the settings at the beginning of a Markdown file, and the text after them.

Files of specialists and skills have it. People copy such files from the internet, so parsing one
creates no objects but text, numbers, lists and dictionaries.
"""

import json
import re
from typing import Any, cast

from agiraph.core.domain.errors import Refused
from agiraph.late_patterns import late

_FRONT = late(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL)
_ENTRIES = late(
    r"^(?=(?:name|description|tools|model|effort|color|examples|when_not_to_use|license|"
    r"allowed-tools|metadata):)",
    re.MULTILINE,
)

# Words have no marks that YAML reads: no colon before a space, no # after one.
_WORDS = late(r"([a-z_]+): ([A-Za-z](?:[!-\"$-9;-~]|:(?! |$)|(?<! )#| (?![ #]|$))*)")
_NAMES = late(r"([a-z_]+): \[([a-z_]+(?:, [a-z_]+)*)\]")
_LIST = late(r"([a-z_]+):")
_ITEM = late(r'  - ("(?:[ !#-\[\]-~\u00a1-\u1fff\u2010-\u2027\u2030-\ud7ff]|\\")*")')
_NO_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null"})
"""What YAML takes for something else than words."""


def split(text: str) -> tuple[dict[str, Any], str]:
    """Return the settings and the text after them, or raise `Refused` without settings."""
    match = _FRONT.match(text)
    if match is None:
        raise Refused("it does not begin with front matter between two lines of ---.")
    return _front_matter(match[1]), match[2].strip()


def _front_matter(text: str) -> dict[str, Any]:
    """Parse YAML; if that fails, as with colons in a description, parse entry by entry."""
    if (whole := _plain(text) or _yaml(text)) is not None:
        return whole
    about: dict[str, Any] = {}
    for entry in _ENTRIES.split(text):
        key, _, value = entry.partition(":")
        about |= _yaml(entry) or {key: value.strip().replace("\\n", "\n")}
    return about


def _plain(text: str) -> dict[str, Any] | None:
    """Return what YAML reads in a text of the few forms that agiraph's own files have; else None.

    To import the parser takes longer than all else that is done with them.
    """
    about: dict[str, Any] = {}
    opened: list[str] | None = None
    for line in text.split("\n"):
        if opened is not None and (item := _ITEM.fullmatch(line)) is not None:
            opened.append(json.loads(item[1]))
            continue
        if (entry := _WORDS.fullmatch(line)) is not None:
            found, opened = [entry[2]], None
            content: Any = entry[2]
        elif (entry := _NAMES.fullmatch(line)) is not None:
            found, opened = entry[2].split(", "), None
            content = found
        elif (entry := _LIST.fullmatch(line)) is not None:
            content = opened = found = list[str]()
        else:
            return None
        if entry[1] in about or not _NO_WORDS.isdisjoint(w.lower() for w in (entry[1], *found)):
            return None
        about[entry[1]] = content
    return None if [] in about.values() else about


def _yaml(text: str) -> dict[str, Any] | None:
    import yaml

    try:
        # People copy these files from the internet: `safe_load` creates no Python objects. Deep
        # nesting makes the parser recurse.
        read = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: an invalid date
        return None
    return cast(dict[str, Any], read) if isinstance(read, dict) else None
