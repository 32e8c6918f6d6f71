"""Files: puts extensions and skills into a home, and enables them as a person would."""

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from agiraph.core.home.layout import Home
from agiraph.features.extensions import pinned

AT = datetime(2026, 1, 2, tzinfo=UTC)


def put(home: Path, name: str, text: str, *, enabled: bool = True) -> str:
    """Write a file into the home; return its hash."""
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    if enabled:
        pinned.enable(Home.open(home), name, sha256, at=AT)
    return sha256


def put_skill(
    home: Path, name: str, body: str = "Do it well.", *, about: str = "How to.", **files: str
) -> Path:
    """Write a skill with these further files into the home; return its folder."""
    folder = home / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {folder.name}\ndescription: {about}\n---\n\n{body}\n"
    )
    for file, text in files.items():
        (folder / file.replace("__", ".")).write_text(text)
    return folder
