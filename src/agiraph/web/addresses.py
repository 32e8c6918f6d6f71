"""Addresses: which URLs may be opened at all, and which machines may be spoken to."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from yarl import URL

from agiraph.domain.errors import Refused

LONGEST = 2048
"""Characters of a URL; longer ones carry data, they do not name a page."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host, as numbers."""

_DENIED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # of carriers; some clouds have their metadata there
        "168.63.129.16/32",  # a cloud's own service, at an address that looks public
        "192.0.0.0/24",  # protocols' own; with one more cloud's metadata
        "192.88.99.0/24",  # a way into IPv6 that nobody should take
        "240.0.0.0/4",
        "::/96",  # IPv4 in disguise, as are the next five
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2002::/16",
        "fec0::/10",
        "3fff::/20",
        "5f00::/16",
    )
)
"""What must not be spoken to although some tables call it global."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL that may be opened, and the only machines that may answer for it."""

    url: URL
    host: str
    port: int
    addresses: tuple[str, ...]


def is_public(address: str) -> bool:
    """Whether a machine stands in the open internet, rather than near us or nowhere."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.scope_id is not None:
            return False
        ip = ip.ipv4_mapped or ip
    if ip.is_multicast or not ip.is_global:
        return False
    return not any(ip in network for network in _DENIED if network.version == ip.version)


def parse(text: str) -> URL:
    """A URL that is written as one should be, or `Refused` with what is wrong with it."""
    text = text.strip()
    if not text or len(text) > LONGEST:
        raise Refused(f"A URL has between 1 and {LONGEST:,} characters; this has {len(text):,}.")
    if any(
        character.isspace() or ord(character) < 32 or character in "\\\x7f" for character in text
    ):
        raise Refused("A URL has no spaces, backslashes or control characters; write %20 and such.")
    scheme, mark, _ = text.partition("://")
    if not mark or scheme.lower() not in ("http", "https"):
        raise Refused(f"{text[:80]!r} is no web address: it begins with https:// or http://.")
    try:
        url = URL(text)
        host, port = url.host, url.port
    except ValueError as error:
        raise Refused(f"{text[:80]!r} cannot be read as a URL: {error}.") from error
    if not host or port is None:
        raise Refused(f"{text[:80]!r} names no host.")
    if url.user is not None or url.password is not None:
        raise Refused("A URL with a user name or password in it is not opened; leave them out.")
    if "%" in host:
        raise Refused(f"{host!r} is no host in the internet.")
    return url.with_fragment(None)


async def resolve(host: str, port: int) -> list[str]:
    """Ask the system, which also knows the odd spellings of numbers."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Decides whom we may speak to. The answer of one look-up counts, to the end."""

    resolve: Resolve = resolve
    refused_ports: frozenset[int] = frozenset()
    """Ours, above all: nobody should make us talk to ourselves."""
    also: frozenset[str] = frozenset()
    """Addresses that are not public and may be spoken to all the same: for tests, on purpose."""

    def admits(self, address: str) -> bool:
        return is_public(address) or address in self.also

    async def admit(self, text: str) -> Target:
        """Where this URL leads, or `Refused` if anything of it is not public."""
        url = parse(text)
        host, port = url.raw_host or "", url.port or 0
        if port in self.refused_ports:
            raise Refused(f"Port {port} is this runtime's own; it is not opened from here.")
        addresses = await self._look_up(host, port)
        if wrong := [address for address in addresses if not self.admits(address)]:
            raise Refused(
                f"{host} leads to {wrong[0]}, which is not in the public internet. It is not "
                "opened."
            )
        return Target(url=url, host=host, port=port, addresses=tuple(addresses))

    async def _look_up(self, host: str, port: int) -> list[str]:
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            pass
        try:
            found = await self.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise Refused(f"There is no host {host!r}: {error}. Check the address.") from error
        if not found:
            raise Refused(f"There is no host {host!r}. Check the address.")
        return found
