"""Addresses: checks which URLs may be opened and which IP addresses may be connected to."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field

from yarl import URL

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.value import dataclass

MAX_URL_CHARS = 2048
"""A longer URL carries data out instead of naming a page."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Looks up the IP addresses of a host and port, as text."""

_NOT_PUBLIC = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; Alibaba Cloud has its metadata service there
        "168.63.129.16/32",  # Azure's host service, at an address that looks public
        "192.0.0.0/24",  # protocol assignments; Oracle Cloud has its metadata service there
        "192.88.99.0/24",  # the former 6to4 relays
        "240.0.0.0/4",
        "::/96",  # IPv4 addresses inside of IPv6 ones, as are the next four
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2002::/16",
        "fec0::/10",
        "3fff::/20",
        "5f00::/16",
    )
)
"""Networks that are refused although Python's `is_global` may call them global."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL that may be opened, with the checked addresses that alone may be connected to."""

    url: URL
    host: str
    port: int
    addresses: tuple[str, ...]
    connect_port: int
    """The port that is connected to: the URL's own, except for a stand-in."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """A server on loopback that plays a host of the internet in tests."""

    address: str
    port: int


def is_public(address: str) -> bool:
    """Whether an IP address is public: not private, local, reserved or multicast."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        # A zone such as `fe80::1%eth0` names an interface of this machine.
        if ip.scope_id is not None:
            return False
        ip = ip.ipv4_mapped or ip
    if ip.is_multicast or not ip.is_global:
        return False
    return not any(ip in network for network in _NOT_PUBLIC if network.version == ip.version)


def parse(text: str) -> URL:
    """Return the URL without its fragment, or raise `Refused` with what is wrong with it."""
    text = text.strip()
    if not text or len(text) > MAX_URL_CHARS:
        raise Refused(
            f"A URL has between 1 and {MAX_URL_CHARS:,} characters; this has {len(text):,}."
        )
    # URL parsers disagree about backslashes and control characters: we might check one host and
    # connect to another.
    if any(
        character.isspace() or ord(character) < 32 or character in "\\\x7f" for character in text
    ):
        raise Refused(
            "A URL contains no spaces, backslashes or control characters. Write %20 for a space."
        )
    scheme, mark, _ = text.partition("://")
    if not mark or scheme.lower() not in ("http", "https"):
        raise Refused(f"{text[:80]!r} is not a web address, which begins with https:// or http://.")
    try:
        url = URL(text)
        host, port = url.host, url.port
    except ValueError as error:
        raise Refused(f"{text[:80]!r} cannot be read as a URL: {error}.") from error
    if not host or port is None:
        raise Refused(f"{text[:80]!r} names no host.")
    # `https://bank.example@evil.example/` leads to evil.example. A person who approves the address
    # would read the first name.
    if url.user is not None or url.password is not None:
        raise Refused("A URL with a user name or password in it is not opened; leave them out.")
    if "%" in host:
        raise Refused(f"{host!r} is not a host name in the internet.")
    return url.with_fragment(None)


async def resolve(host: str, port: int) -> list[str]:
    """Look the host up with the system's resolver.

    It resolves unusual spellings too, such as `2130706433` for 127.0.0.1, so that the address is
    checked and not its spelling.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPolicy:
    """Decides which URLs may be opened.

    A host is looked up once and only the addresses found are connected to. A second lookup could
    return another address (DNS rebinding).
    """

    resolve: Resolve = resolve
    refused_ports: frozenset[int] = frozenset()
    """The port of the runtime's own API, so that no agent can call it by a URL."""
    also_allowed: frozenset[str] = frozenset()
    """Addresses that are allowed though not public. Tests use it for servers on loopback."""
    stand_ins: Mapping[str, StandIn] = field(default_factory=dict[str, StandIn], hash=False)
    """Hosts that are played by a server on loopback, for tests. Only these names lead there, at
    whatever port they are asked for; the address itself stays refused."""

    def allows(self, address: str) -> bool:
        return is_public(address) or address in self.also_allowed

    def allows_connection(self, address: str, port: int) -> bool:
        """Whether a socket may be connected to this address and port."""
        return self.allows(address) or StandIn(address, port) in self.stand_ins.values()

    async def check(self, text: str) -> Target:
        """Return the URL with its addresses, or raise `Refused` if one of them is not public."""
        url = parse(text)
        host, port = url.raw_host or "", url.port or 0
        if port in self.refused_ports:
            raise Refused(f"Port {port} is this runtime's own; agents may not open it.")
        if (stand_in := self.stand_ins.get(host)) is not None:
            return Target(
                url=url,
                host=host,
                port=port,
                addresses=(stand_in.address,),
                connect_port=stand_in.port,
            )
        # One private address is enough to refuse a host: an attacker's DNS may list a public
        # address first and a metadata service behind it.
        addresses = await self._look_up(host, port)
        if not all(self.allows(address) for address in addresses):
            raise Refused(
                f"{host} leads to an address that is not in the public internet. Only public "
                "addresses may be opened."
            )
        return Target(url=url, host=host, port=port, addresses=tuple(addresses), connect_port=port)

    async def _look_up(self, host: str, port: int) -> list[str]:
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            pass
        try:
            found = await self.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise Refused(f"There is no host {host!r} ({error}). Check the address.") from error
        if not found:
            raise Refused(f"There is no host {host!r}. Check the address.")
        return found
