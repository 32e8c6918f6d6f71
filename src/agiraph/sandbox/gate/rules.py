"""Gate rules: which hosts a command may reach, and the sentences that say how to allow more."""

from collections.abc import Iterable
from dataclasses import field, replace
from typing import Literal
from urllib.parse import urlsplit

from agiraph.core.domain.value import dataclass
from agiraph.sandbox.gate.package_names import PackageNames

GateNetwork = Literal["packages", "hosts", "open"]
"""packages: package indexes, and git read from granted hosts. hosts: granted hosts, too. open: all
that is public."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and port that the settings name. It may be inside your network: a person chose it."""

    host: str
    port: int


def endpoint_of(url: str) -> Endpoint | None:
    """Return the endpoint of an http or https address; None for any other text."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    return Endpoint(host, port or (443 if parts.scheme == "https" else 80))


class Denied(Exception):
    """The gate refuses a request. The text tells the command's author what to do."""

    def __init__(self, sentence: str, *, status: int = 403, host: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status
        self.host = host
        """The host or package that the sentence names: a stranger may have chosen it."""


def names_host(patterns: Iterable[str], host: str) -> bool:
    """Whether a pattern is this host, or `*.` and a domain above it."""
    return any(
        host == pattern or (pattern[:2] == "*." and f".{host}".endswith(pattern[1:]))
        for pattern in patterns
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one command may reach."""

    network: GateNetwork
    reachable: frozenset[str] = frozenset()
    """Hosts that commands may talk to, `*.` before a domain: by a `reach` grant of a person."""
    readable: frozenset[str] = frozenset()
    """Hosts from which git may read: by a `read` grant."""
    repositories: frozenset[str] = frozenset()
    """Repositories from which git may read, as `git_reading.repository`: the remotes of the team's
    folders."""
    endpoints: frozenset[Endpoint] = frozenset()
    """Endpoints that are reachable in every network, also at private addresses."""
    names: PackageNames = field(default_factory=PackageNames)
    team: str = "TEAM"
    """The team's name in the sentences."""
    is_private: bool = False
    """Whether the command names the whole network and can send what is a person's."""
    asks: bool = False
    """Whether `network="open"` would ask a person."""

    def bound_to(self, hosts: Iterable[str]) -> "Rules":
        """Return rules for a command that reaches these hosts and granted ones, although its call
        names the whole network: it can send what is a person's."""
        return replace(self, network="hosts", reachable=self.reachable | {*hosts}, is_private=True)

    def check_host(self, host: str, port: int) -> None:
        """Raise `Denied` unless the command may talk to this host as it likes."""
        if self.network == "open" or Endpoint(host, port) in self.endpoints:
            return
        if self.network == "hosts" and names_host(self.reachable, host):
            return
        raise Denied(self.how_to_reach(host), host=host)

    def check_git(self, host: str, port: int, repository: str) -> None:
        """Raise `Denied` unless git may read this repository, or all of this host."""
        if self.network == "open" or Endpoint(host, port) in self.endpoints:
            return
        if repository in self.repositories:
            return
        if names_host(self.reachable | self.readable, host):
            return
        raise Denied(
            f"No grant lets this team read git from {host}: a person gives one with "
            f"`agiraph grant {self.team} read {host}`{self._or_open()}.",
            host=host,
        )

    def how_to_reach(self, host: str) -> str:
        """Return the sentence that says how a command may reach this host."""
        if self.is_private:
            return (
                f"Nobody has allowed {host}, and the command can send files or mail of a person. "
                "Write the whole address into the command, and a person is asked once."
            )
        if self.network == "hosts":
            return (
                f"No grant lets commands of this team reach {host}: a person gives one with "
                f"`agiraph grant {self.team} reach {host}`{self._or_open()}."
            )
        if names_host(self.reachable, host):
            return (
                f'network="packages" does not reach {host}, but a person has allowed it: make the '
                'same call with network="hosts".'
            )
        if self.asks:
            return (
                f'network="packages" does not reach {host}: make the same call with '
                'network="open" and a person is asked, or they allow the host with '
                f'`agiraph grant {self.team} reach {host}` and you call with network="hosts".'
            )
        return (
            f'network="packages" does not reach {host}: make the same call with network="open" '
            'to reach any public host, or with network="hosts" if a grant names it.'
        )

    def _or_open(self) -> str:
        if self.network == "open":
            return ""
        return ', or make the same call with network="open"' + (
            ", and a person is asked" if self.asks else ""
        )
