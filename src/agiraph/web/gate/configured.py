"""Configured indexes: the table [packages] of agiraph.toml."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agiraph.domain.errors import Misconfigured
from agiraph.redaction import keep
from agiraph.web.gate.indexes import PackageIndexes, PythonSources

EXAMPLE = (
    '[packages] with python = ["https://index.example/simple"], npm = "https://npm.example/" or '
    'cargo = "https://cargo.example/index/"; what is missing there, pip, npm and cargo are asked'
)
_Address = Annotated[str, Field(pattern=r"^(https?|file)://")]
_Web = Annotated[str, Field(pattern=r"^(sparse\+)?https?://")]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    python: list[_Address] | None = None
    npm: _Web | None = None
    cargo: _Web | None = None


def indexes(path: Path, written: Any) -> PackageIndexes:
    """Return where commands get packages from. Passwords in addresses are kept out of all logs."""
    if written is None:
        return PackageIndexes()
    try:
        entry = _Entry.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in ("packages", *first["loc"]))
        raise Misconfigured(f"{path}: {where}: {first['msg']}. Write {EXAMPLE}.") from error
    named: list[str] = [*(entry.python or []), entry.npm or "", entry.cargo or ""]
    for number, url in enumerate(named):
        if password := urlsplit(url).password:
            keep({f"password of index {number}": password})
    python = None if entry.python is None else PythonSources(indexes=tuple(entry.python))
    return PackageIndexes(python=python, npm=entry.npm, cargo=entry.cargo)


def shown(indexes: PackageIndexes) -> dict[str, str]:
    """Return the addresses that the settings name, by the key of the table."""
    python = "" if indexes.python is None else ", ".join(indexes.python.indexes)
    found = {"python": python, "npm": indexes.npm or "", "cargo": indexes.cargo or ""}
    return {name: value for name, value in found.items() if value}
