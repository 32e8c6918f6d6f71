"""Statuses: the state of each extension of a home, as lists show it to people."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from agiraph.extensions.declarations import Declaration, Kind, ToolDeclaration
from agiraph.extensions.finding import Found, Source

State = Literal["off", "on", "changed", "faulty"]
"""off: no person has enabled it. changed: a person has enabled other content under its name, so it
is off again. faulty: enabled, but it cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One tool, engine, channel or provider that an extension declares."""

    name: str
    touches: str = ""
    effect: str = ""
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, declared: Declaration) -> "Offer":
        if not isinstance(declared, ToolDeclaration):
            return cls(name=declared.name, secrets=declared.secrets)
        return cls(
            name=declared.name,
            touches=declared.touches,
            effect=declared.effect,
            secrets=declared.secrets,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionStatus:
    """The state of one extension."""

    id: str
    kind: Kind
    source: Source
    sha256: str
    state: State
    problem: str = ""
    enabled_at: datetime | None = None
    offers: tuple[Offer, ...] = field(default=())
    """What it declares; known only of an extension that is on."""

    @property
    def summary(self) -> str:
        """Return in one sentence what a person must know of it."""
        match self.state:
            case "off":
                return self.problem or "not enabled"
            case "changed":
                return "changed since it was enabled, so it is off; enable it again to use it"
            case "faulty":
                return self.problem
            case "on":
                return ", ".join(_words(offer) for offer in self.offers)


def _words(offer: Offer) -> str:
    said = [offer.touches] if offer.touches else []
    said += [f"secrets: {', '.join(offer.secrets)}"] if offer.secrets else []
    return f"{offer.name} ({'; '.join(said)})" if said else offer.name


def status(
    found: Found, *, state: State, problem: str = "", enabled_at: datetime | None = None
) -> ExtensionStatus:
    return ExtensionStatus(
        id=found.id,
        kind=found.kind,
        source=found.source,
        sha256=found.sha256,
        state=state,
        problem=problem or found.problem,
        enabled_at=enabled_at,
    )
