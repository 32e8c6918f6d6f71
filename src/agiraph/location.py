"""Location: finds the home folder and the server's address, which is all most commands need."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from agiraph.api.listen_address import Address
from agiraph.api.listen_address import read as read_address
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.features import installed

FILE = "agiraph.toml"
IN_FILE = {
    "AGIRAPH_DATABASE_URL": "database_url",
    "AGIRAPH_MODEL": "model",
    "AGIRAPH_REPLY_MODEL": "reply_model",
    "AGIRAPH_READER_MODEL": "reader_model",
    "AGIRAPH_ZONE": "zone",
    "AGIRAPH_RETENTION": "retention",
    "AGIRAPH_SANDBOX": "sandbox",
    "AGIRAPH_SANDBOX_READ": "sandbox_read",
}
"""Settings that agiraph.toml may hold too. Keys may not: files are shared by accident."""
SERVER = "server"
TABLES = frozenset(
    {
        "servers",
        "web",
        "packages",
        "models",
        "roles",
        "commands",
        "command_limits",
        "folders",
        "limits",
        "rate_limits",
        SERVER,
        "search",
        "secrets",
    }
)
"""Tables of agiraph.toml, besides those of features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A home, its database and its server."""

    home: Path
    database_url: str = field(repr=False)
    address: Address = Address()
    token: str = field(default="", repr=False)
    """The API's token; empty: the token file in the home is used."""


def find(environ: Mapping[str, str] = os.environ) -> Location:
    """Return the location from the environment, agiraph.toml and defaults, in this order."""
    # `or`: a variable that is set but empty counts as unset.
    home = Path(environ.get("AGIRAPH_HOME") or Path.home() / ".agiraph").expanduser()
    written = written_in(home / FILE)
    return Location(
        home=home,
        database_url=environ.get("AGIRAPH_DATABASE_URL")
        or written.get("database_url", f"sqlite:///{home / 'agiraph.db'}"),
        address=read_address(home / FILE, written.get(SERVER), environ),
        token=environ.get("AGIRAPH_TOKEN") or "",
    )


def known_tables() -> frozenset[str]:
    """Return the names of all tables that agiraph.toml may have."""
    return TABLES.union(*(feature.settings_tables for feature in installed()))


def written_in(path: Path) -> dict[str, Any]:
    """Return the content of agiraph.toml; raise `Misconfigured` for unknown settings."""
    try:
        written = tomllib.loads(path.read_bytes().decode())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Misconfigured(f"Cannot read {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path} is not valid TOML: {error}.") from error
    tables = known_tables()
    if unknown := set(written) - set(IN_FILE.values()) - tables:
        known = ", ".join(sorted([*IN_FILE.values(), *tables]))
        raise Misconfigured(f"{path} has unknown settings {sorted(unknown)}; it knows: {known}.")
    texts = {name: chain(value) for name, value in written.items() if name not in tables}
    if wrong := [name for name, value in texts.items() if not isinstance(value, str)]:
        raise Misconfigured(f"{path}: {', '.join(wrong)} must be text, in quotes.")
    return written


def chain(value: Any) -> Any:
    """Join a list of models into one setting; each model is the fallback of the one before it."""
    if isinstance(value, list) and all(isinstance(name, str) for name in cast(list[Any], value)):
        return ", ".join(cast(list[str], value))
    return cast(Any, value)
