"""Config: environment, then agiraph.toml in the home, then defaults; and where each came from."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agiraph.domain.errors import Misconfigured
from agiraph.providers.registry import Keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value in force and its origin."""

    value: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    home: Path
    database_url: str
    model: str
    keys: Keys = field(repr=False)
    shown: dict[str, Setting] = field(default_factory=dict[str, Setting])
    """Every setting with its origin, secrets masked: for people to look at."""


FILE = "agiraph.toml"
SECRETS = frozenset({"OPENAI_API_KEY"})
_IN_FILE = {
    "AGIRAPH_DATABASE_URL": "database_url",
    "AGIRAPH_MODEL": "model",
}
"""What may also stand in agiraph.toml. Keys may not: a file is copied more easily than meant."""


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in force, or `Misconfigured` with the file and line to look at."""
    home = Path(environ.get("AGIRAPH_HOME") or Path.home() / ".agiraph").expanduser()
    written = _read(home / FILE)
    shown: dict[str, Setting] = {}

    def pick(name: str, default: str) -> str:
        found = Setting(value=default, origin="default")
        if (key := _IN_FILE.get(name)) in written:
            found = Setting(value=str(written[key]), origin=FILE)
        if environ.get(name):
            found = Setting(value=environ[name], origin="environment")
        masked = "set" if name in SECRETS and found.value else found.value
        shown[name] = Setting(value=masked, origin=found.origin)
        return found.value

    keys = Keys(openai_key=pick("OPENAI_API_KEY", ""), openai_url=pick("OPENAI_BASE_URL", ""))
    shown["AGIRAPH_HOME"] = Setting(
        value=str(home), origin="environment" if environ.get("AGIRAPH_HOME") else "default"
    )
    return Settings(
        home=home,
        database_url=pick("AGIRAPH_DATABASE_URL", f"sqlite:///{home / 'agiraph.db'}"),
        model=pick("AGIRAPH_MODEL", "demo"),
        keys=keys,
        shown=shown,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Misconfigured(f"Cannot read {path}: {error.strerror}.") from error
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(f"{path} is not valid TOML: {error}.") from error
    if unknown := set(written) - set(_IN_FILE.values()):
        known = ", ".join(sorted(_IN_FILE.values()))
        raise Misconfigured(f"{path} has unknown settings {sorted(unknown)}; it knows: {known}.")
    return written
