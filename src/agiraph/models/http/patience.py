"""Patience: how long a server may be silent before its reply begins, and within it."""

import ipaddress
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from agiraph.core.domain.sections import entry, must
from agiraph.core.domain.value import dataclass

MAX_PATIENCE_S = 86_400
Limit = Annotated[
    float,
    Field(gt=0, le=MAX_PATIENCE_S),
    must(f"must be a number of seconds from 1 to {MAX_PATIENCE_S:,}, such as 600"),
]
PatienceSettings = Mapping[str, float]
"""Limits by the names of the fields of `Patience`; one that is missing has its default."""


@entry
class PatienceEntry:
    """What [servers.NAME] and [models."provider/model"] may say of patience."""

    first_byte_s: Limit | None = None
    between_bytes_s: Limit | None = None

    @property
    def given(self) -> PatienceSettings:
        return {name: limit for name, limit in asdict(self).items() if limit is not None}


MAX_FIRST_EVENT_S = 3600.0
"""The longest wait for the first event of a reply while a server only sends keep-alives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Two limits of silence, in seconds.

    Any byte is a sign of life and starts the clock again, be it of a header or of a keep-alive
    comment. But only the first event of the reply ends the wait for the first byte: a server that
    sends headers or comments at once may still read a long prompt for minutes.
    """

    first_byte_s: float = 300.0
    between_bytes_s: float = 120.0

    def changed(self, settings: PatienceSettings) -> "Patience":
        """Return this patience with the limits that the settings name."""
        return replace(self, **settings) if settings else self

    def longer(self, factor: float) -> "Patience":
        """Return this patience with a longer wait for the first byte."""
        return self if factor == 1 else replace(self, first_byte_s=self.first_byte_s * factor)

    @property
    def first_event_s(self) -> float:
        """The longest wait for the first event, however many keep-alives come before it."""
        return max(self.first_byte_s, MAX_FIRST_EVENT_S)


REMOTE = Patience()
"""Vendors send the first event within seconds, or keep-alives while a model thinks."""
LOCAL = Patience(first_byte_s=900.0, between_bytes_s=180.0)
"""A server on this machine or network may load a model first, and read a long prompt slowly."""


@lru_cache(256)
def default_patience(url: str) -> Patience:
    """Return the patience with the server of this URL if the settings say nothing."""
    return LOCAL if _is_near(urlsplit(url).hostname or "") else REMOTE


def _is_near(host: str) -> bool:
    """Whether a host is on this machine or in a private network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal", ".localhost"))
    return address.is_loopback or address.is_private
