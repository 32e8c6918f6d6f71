"""Location: finds the home folder and the server's address, which is all most commands need."""

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, StringConstraints

from agiraph.api.connections import Limits
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.features import installed
from agiraph.core.domain.sections import FILE, Section, entry, must
from agiraph.core.domain.value import dataclass

IN_FILE = frozenset(
    ("database_url", "model", "reply_model", "reader_model", "zone", "retention", "sandbox",
     "sandbox_read")
)  # fmt: skip
"""Settings that agiraph.toml may hold too; their variables are AGIRAPH_MODEL and so on. Keys may
not: files are shared by accident."""
TABLES = frozenset(
    ("servers", "web", "packages", "models", "roles", "commands", "command_limits", "folders",
     "limits", "rate_limits", "server", "search", "secrets")
)  # fmt: skip
"""Tables of agiraph.toml, besides those of features."""
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


@entry
class _Server:
    hosts: tuple[_Text, ...] = ()
    certificate: _Text | None = None
    key: _Text | None = None
    proxy: Annotated[str, Field(pattern="^https://"), must("must begin with https://")] = ""
    connections: Annotated[int, Field(ge=16)] = Limits().connections
    connections_per_address: Annotated[int, Field(ge=0)] = Limits().per_address


_SECTION: Section[_Server] = Section(
    "server",
    _Server,
    '[server] with hosts = ["name.example"], certificate and key, or proxy = "https://…"',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    host: str = "127.0.0.1"
    port: int = 8717
    names: tuple[str, ...] = ()
    """Further host names of this server, as in a Host header."""
    certificate: Path | None = None
    key: Path | None = None
    proxy: str = ""
    """The https URL under which your reverse proxy serves this server."""
    limits: Limits = Limits()
    """Limits for client connections."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it. `0.0.0.0` and an empty name are not local."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """The URL for a person on this machine."""
        scheme = "https" if self.certificate else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.proxy or f"{scheme}://{host}:{self.port}"

    def hosts(self, port: int) -> frozenset[str]:
        """Return the Host headers that this server accepts."""
        # A page that rebinds its DNS name to 127.0.0.1 still sends its own name in the Host header,
        # which is not in this set.
        named = {"127.0.0.1", "localhost", "[::1]", *(n.lower() for n in self.names)}
        if self.is_local is False:
            named.add(f"[{self.host}]" if ":" in self.host else self.host.lower())
        found = {f"{name}:{port}" for name in named} | {n for n in self.names if ":" in n}
        if self.proxy:
            found.add(self.proxy.removeprefix("https://").rstrip("/").lower())
        return frozenset(found)

    def check(self) -> None:
        """Raise `Misconfigured` if other machines can reach the server without TLS."""
        if self.is_local or self.proxy or (self.certificate and self.key):
            return
        raise Misconfigured(
            f"AGIRAPH_HOST {self.host!r} can be reached from other machines, and tokens would "
            "cross the network in the clear. Use 127.0.0.1; or name `certificate` and `key`, or "
            "the https address of your `proxy`, under [server] in agiraph.toml."
        )


def read_address(path: Path, written: Any, environ: Mapping[str, str]) -> Address:
    """Return the configured address; raise `Misconfigured` naming the wrong setting."""
    server = _SECTION.read(path, written)
    port = environ.get("AGIRAPH_PORT") or "8717"
    if not port.isdecimal() or int(port) > 65535:
        raise Misconfigured(f"AGIRAPH_PORT {port!r} is not a port; use a number up to 65535.")
    if (server.certificate is None) != (server.key is None):
        raise Misconfigured(f"{path}: server needs both `certificate` and `key`, or neither.")
    named = {"certificate": server.certificate, "key": server.key}
    files = {name: path.parent / file for name, file in named.items() if file is not None}
    for name, file in files.items():
        if not file.is_file():
            raise Misconfigured(f"{path}: server.{name}: there is no file {str(file)!r}.")
    return Address(
        host=environ.get("AGIRAPH_HOST") or "127.0.0.1",
        port=int(port),
        names=server.hosts,
        certificate=files.get("certificate"),
        key=files.get("key"),
        proxy=server.proxy,
        limits=Limits(connections=server.connections, per_address=server.connections_per_address),
    )


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
        address=read_address(home / FILE, written.get(_SECTION.name), environ),
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
    if unknown := set(written) - IN_FILE - tables:
        known = ", ".join(sorted(IN_FILE | tables))
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
