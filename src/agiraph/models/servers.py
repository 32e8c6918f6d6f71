"""Servers: the model servers that agiraph.toml names, each with its address, wire and window."""

import re
from dataclasses import field, replace
from typing import Annotated, NoReturn

from pydantic import AfterValidator, Field

from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.sections import Section, Written, entry, must
from agiraph.models.http.patience import PatienceEntry
from agiraph.models.options import Calls, Headers
from agiraph.models.vendors import CHAT, REMOTE_VENDOR_NAMES, WIRES

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_RESERVED = REMOTE_VENDOR_NAMES | {"demo", "text"}


def _refuse_key(given: str) -> NoReturn:
    raise ValueError(
        "put it into the environment and its variable into key_env: files are copied and shared by "
        "accident more easily"
    )


@entry
class Server:
    """A server named in agiraph.toml."""

    base_url: Annotated[
        str, Field(pattern="^https?://"), must("must begin with https:// or http://")
    ]
    key: Annotated[str, AfterValidator(_refuse_key)] = field(default="", repr=False)
    """From the environment."""
    key_env: Annotated[str, must("must be the name of a variable")] = ""
    """The environment variable that should hold the key; empty if the server needs none."""
    wire: Annotated[
        str,
        Field(pattern=f"^({'|'.join(WIRES)})$"),
        must(f"is not known; use {', '.join(WIRES)}"),
    ] = CHAT
    """The API that the server speaks, one of `WIRES`."""
    headers: Headers = field(default_factory=dict[str, str], repr=False)
    """Sent with every request."""
    window: Annotated[int, Field(ge=1), must("must be a number of tokens, such as 8192")] | None = (
        None
    )
    """The context window of its models in tokens; None: the server is asked for it."""
    calls: Calls | None = None
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


SERVERS: Section[Server] = Section(
    "servers",
    Server,
    '[servers.NAME] with base_url = "http://…/v1" and, if it needs one, key_env = "VAR"',
    beside=(PatienceEntry,),
)


def servers(given: Written) -> dict[str, Server]:
    """Return the file's model servers, each with its key from the environment, and record them."""
    found = given.tables(SERVERS)
    for name in found:
        # A model is named provider/model; a server with a provider's name would hide one of them.
        if name in _RESERVED:
            said = "has the name of a provider; give it one of its own"
            raise Misconfigured(f"{given.path}: [servers.{name}] {said}.")
        if not _NAME.fullmatch(name):
            raise Misconfigured(
                f"{given.path}: [servers.{name}]: a name is small letters, digits, - and _."
            )
    keys = given.environ
    found = {name: replace(one, key=keys.get(one.key_env, "")) for name, one in found.items()}
    given.show_each(SERVERS.name, found)
    return found
