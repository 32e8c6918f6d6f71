"""Model facts: what a model can do and costs, each fact with the place that it was read from."""

from typing import Generic, Literal, TypeVar

from agiraph.core.domain.value import dataclass

Origin = Literal["file", "server", "package", "assumed"]
"""agiraph.toml, the model's own server, data in an installed package, or a cautious guess."""
ASSUMED_WINDOW_TOKENS = 8_192
"""The window of a server that does not say what it accepts: small local servers have so much, and
a larger guess would let them drop the beginning of a prompt without a word."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """One thing that is known of a model."""

    value: T
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of a model; None where nothing is."""

    window: Fact[int]
    """Tokens that a request may hold."""
    output_limit: Fact[int] | None = None
    """Tokens of the longest reply."""
    tools: Fact[bool] | None = None
    """Whether it calls tools. Without that it can be used as `text/…`."""
    images: Fact[bool] | None = None
    pdf: Fact[bool] | None = None
    thinking: Fact[bool] | None = None
    input_usd: Fact[float] | None = None
    """Dollars per million input tokens."""
    output_usd: Fact[float] | None = None
    retires: str = ""
    """The day on which the vendor stops the model, as YYYY-MM-DD; empty: none is announced."""
    use_instead: str = ""
    """The vendor's model to use instead of one that retires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What one place says of a model: a file, a server or a package. None: it says nothing."""

    window: int | None = None
    output: int | None = None
    tools: bool | None = None
    images: bool | None = None
    pdf: bool | None = None
    thinking: bool | None = None
    retires: str = ""
    use: str = ""


NOTHING = Known()


def first(*told: tuple[T | None, Origin]) -> Fact[T] | None:
    """Return the first value that a place has told."""
    return next((Fact(value, origin) for value, origin in told if value is not None), None)
