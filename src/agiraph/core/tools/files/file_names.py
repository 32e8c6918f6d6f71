"""File names: finds the names of files in a text, by their form alone."""

import re

from agiraph.core.domain.text.late_patterns import late

_DOCUMENTS = (
    "md txt rst csv tsv json jsonl yaml yml toml ini xml html htm tex pdf doc docx xls xlsx ppt"
    " pptx odt png jpg jpeg gif svg webp ipynb py sh sql"
)
_OTHERS = (
    "cfg css js jsx ts tsx rb go rs java kt c h cc cpp hpp cs swift php pl bash r mp3 mp4 wav zip"
    " tar gz log db sqlite lock env diff patch"
)
_ENDINGS = frozenset(f"{_DOCUMENTS} {_OTHERS}".split())
_MARKS = r"\u0300-\u036f\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u200c\u200d"
"""Vowel signs and joiners inside of words, of which many are no `\\w`, in scripts with spaces."""
_NO_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CHARACTER = rf"(?:[^\W{_NO_SPACES}]|[{_MARKS}])"
"""A character of a name. In scripts without spaces a name cannot be told from the words around
it, so theirs are none."""
_IN_BACKTICKS = late(rf"`([\w{_MARKS}./-]+\.([A-Za-z][A-Za-z0-9]{{0,5}}))`")
_BARE = late(
    rf"(?<![./@:~$%*<>{{}}-])(?<!{_CHARACTER})(?:{_CHARACTER}|[./-])*{_CHARACTER}"
    rf"\.(?:{'|'.join(_DOCUMENTS.split())})(?!{_CHARACTER}|[-/(@*<]|\.\w)",
    re.IGNORECASE,
)
_PATTERN = late(r"YYYY|XX|NN|^www\.")
"""What stands for other characters, and the start of an address."""


def in_backticks(text: str) -> list[str]:
    """Return the names in backticks; a command in backticks is none."""
    if "`" not in text:  # most texts: the patterns take long to compile
        return []
    found = (match for match in _IN_BACKTICKS.finditer(text) if match[2].lower() in _ENDINGS)
    return list(dict.fromkeys(match[1] for match in found))


def in_text(text: str) -> list[str]:
    """Return the names in a text, in backticks or not, but for those in commands and addresses."""
    if "." not in text:
        return []
    bare = (match[0] for match in _BARE.finditer(re.sub(r"`[^`\n]*`", " ` ", text)))
    named = (*in_backticks(text), *(name for name in bare if not _is_address(name)))
    return [name for name in dict.fromkeys(named) if not _PATTERN.search(name)]


def _is_address(name: str) -> bool:
    first, slash, _ = name.partition("/")
    return bool(slash) and "." in first.strip(".")


def base(name: str) -> str:
    """Return a file's name without its folder, for comparing it."""
    return name.rstrip("/").rpartition("/")[2].casefold()
