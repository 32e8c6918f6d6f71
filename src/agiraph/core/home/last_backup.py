"""Last backup: when the newest backup of a home was made, and where it was written to."""

from datetime import datetime
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agiraph.core.domain.errors import AgiraphError
from agiraph.core.home.layout import Home

FILE = "last-backup.json"
_LONGEST_BYTES = 64 * 1024


class LastBackup(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    at: datetime
    file: str


def write(home: Home, target: Path, *, at: datetime) -> None:
    """Note that a backup was written to this file."""
    note = LastBackup(at=at, file=str(target))
    home.folder.write(FILE, note.model_dump_json().encode())


def read(home: Home) -> LastBackup | None:
    """Return the newest backup; None if there is none, or the note cannot be read."""
    try:
        return LastBackup.model_validate_json(home.folder.read(FILE, limit=_LONGEST_BYTES))
    except (AgiraphError, ValidationError):
        return None
