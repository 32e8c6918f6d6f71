"""Listen address: where the server listens, its host names, and its TLS settings."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agiraph.api.connections import Limits
from agiraph.domain.errors import Misconfigured

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Entry(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # pyright: ignore[reportGeneralTypeIssues]

    hosts: NotRequired[list[Text]]
    certificate: NotRequired[Text]
    key: NotRequired[Text]
    proxy: NotRequired[Text]
    connections: NotRequired[Annotated[int, Field(ge=16)]]
    connections_per_address: NotRequired[Annotated[int, Field(ge=0)]]


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


@cache
def _adapter() -> TypeAdapter[_Entry]:
    """Return what checks the table; built once, because that takes milliseconds."""
    return TypeAdapter(_Entry)


def read(path: Path, written: Any, environ: Mapping[str, str]) -> Address:
    """Return the configured address; raise `Misconfigured` naming the wrong setting."""
    try:
        entry = _adapter().validate_python(written)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(["server", *map(str, fault["loc"])])
        raise Misconfigured(f"{path}: {where}: {fault['msg']}.") from error
    port = environ.get("AGIRAPH_PORT") or "8717"
    if not port.isdecimal() or int(port) > 65535:
        raise Misconfigured(f"AGIRAPH_PORT {port!r} is not a port; use a number up to 65535.")
    proxy = entry.get("proxy", "")
    if proxy and not proxy.startswith("https://"):
        raise Misconfigured(f"{path}: server.proxy {proxy!r} must begin with https://.")
    if ("certificate" in entry) != ("key" in entry):
        raise Misconfigured(f"{path}: server needs both `certificate` and `key`, or neither.")
    files = {
        name: path.parent / str(value)
        for name, value in entry.items()
        if name in ("certificate", "key")
    }
    for name, file in files.items():
        if not file.is_file():
            raise Misconfigured(f"{path}: server.{name}: there is no file {str(file)!r}.")
    return Address(
        host=environ.get("AGIRAPH_HOST") or "127.0.0.1",
        port=int(port),
        names=tuple(entry.get("hosts", ())),
        certificate=files.get("certificate"),
        key=files.get("key"),
        proxy=proxy,
        limits=Limits(
            connections=entry.get("connections", Limits().connections),
            per_address=entry.get("connections_per_address", Limits().per_address),
        ),
    )
