"""Skills: instructions that a person has enabled, read by an agent when it needs them."""

from pathlib import Path

from agiraph.core.domain.value import value

DESCRIPTION_CHARACTERS = 200
"""The most characters of one description in a prompt."""
LISTED_CHARACTERS = 1500
"""The most characters of all descriptions in a prompt; skills beyond it are listed by name only."""
TOP = "SKILL.md"


@value
class Skill:
    """A folder with SKILL.md that a person has enabled."""

    name: str
    description: str
    sha256: str
    path: Path
    """The copy that was made when it was enabled: exactly the files that the person agreed to."""
    files: tuple[str, ...] = ()
    """The files besides SKILL.md, by their path in the folder."""


MOST_BYTES = 16 * 2**20
