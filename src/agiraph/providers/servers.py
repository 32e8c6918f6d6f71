"""Servers: the model servers that agiraph.toml names, each with its address, wire and window."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from agiraph.domain.errors import Misconfigured
from agiraph.providers.http.patience import PATIENCE_KEYS
from agiraph.providers.options import CallForm, calls_of, headers_of
from agiraph.providers.vendors import CHAT, REMOTE_VENDOR_NAMES, WIRES

EXAMPLE = '[servers.NAME] with base_url = "http://…/v1" and, if it needs one, key_env = "VAR"'
KNOWN = ("base_url", "key_env", "wire", "headers", "window", "calls", *PATIENCE_KEYS)
"""The keys of a [servers.NAME] table."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_RESERVED = REMOTE_VENDOR_NAMES | {"demo", "text"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server named in agiraph.toml."""

    base_url: str
    key: str = field(default="", repr=False)
    key_env: str = ""
    """The environment variable that should hold the key; empty if the server needs none."""
    wire: str = CHAT
    """The API that the server speaks, one of `WIRES`."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent with every request."""
    window: int | None = None
    """The context window of its models in tokens; None: the server is asked for it."""
    calls: CallForm | None = None
    """How calls of its models are read, if a model's own settings do not say it; None: from the
    API's own fields, unless a probe finds them in text."""

    @property
    def description(self) -> str:
        """The settings for people to look at, without the key."""
        told: list[str] = []
        if self.key_env:
            told.append(f"key in {self.key_env}: {'set' if self.key else 'missing'}")
        if self.wire != CHAT:
            told.append(f"wire {self.wire}")
        if self.window is not None:
            told.append(f"window {self.window:,}")
        if self.calls is not None:
            told.append(f"calls {self.calls}")
        return self.base_url + (f" ({', '.join(told)})" if told else "")


def servers(path: Path, written: Any, environ: Mapping[str, str]) -> dict[str, Server]:
    """Return the file's model servers, each with its key from the environment."""
    if not isinstance(written, dict):
        raise Misconfigured(f"{path}: servers are tables, {EXAMPLE}.")
    found: dict[str, Server] = {}
    for name, table in cast(dict[str, Any], written).items():
        where = f"{path}: [servers.{name}]"
        if not isinstance(table, dict):
            raise Misconfigured(f"{where} must be a table: {EXAMPLE}.")
        # A model is named provider/model; a server with a provider's
        # name would hide one of the two.
        if name in _RESERVED:
            raise Misconfigured(f"{where} has the name of a provider; give it one of its own.")
        if not _NAME.fullmatch(name):
            raise Misconfigured(f"{where}: a name is small letters, digits, - and _.")
        found[name] = _server(where, cast(dict[str, Any], table), environ)
    return found


def _server(where: str, table: dict[str, Any], environ: Mapping[str, str]) -> Server:
    if "key" in table:
        raise Misconfigured(
            f"{where} holds a key. Put it into the environment and its variable into key_env: "
            "files are copied and shared by accident more easily."
        )
    if unknown := sorted(set(table) - set(KNOWN)):
        raise Misconfigured(
            f"{where} has unknown settings {unknown}; it knows: {', '.join(KNOWN)}."
        )
    url, variable = table.get("base_url", ""), table.get("key_env", "")
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        raise Misconfigured(f"{where} base_url {url!r} must begin with https:// or http://.")
    if not isinstance(variable, str):
        raise Misconfigured(f"{where} key_env {variable!r} must be the name of a variable.")
    wire, window = table.get("wire", CHAT), table.get("window")
    if wire not in WIRES:
        raise Misconfigured(f"{where} wire {wire!r} is not known; use {', '.join(WIRES)}.")
    if window is not None and (type(window) is not int or window < 1):
        raise Misconfigured(f"{where} window {window!r} must be a number of tokens, such as 8192.")
    return Server(
        base_url=url,
        key=environ.get(variable, ""),
        key_env=variable,
        wire=wire,
        headers=headers_of(where, table.get("headers", {}), environ),
        window=window,
        calls=calls_of(where, table.get("calls")),
    )
