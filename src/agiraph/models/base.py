"""Models: the interface of a model, whichever vendor serves it."""

from collections.abc import Callable
from typing import Any, Protocol

from agiraph.core.domain.chat import NO_DATA, ProviderData, ToolCall, ToolSpec, Transcript
from agiraph.core.domain.errors import ModelGarbled
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Effort, Usage

OnDelta = Callable[[str], None]
"""Called with each piece of a reply's text as it arrives, for live display. Only the whole reply is
stored, so a reply that fails after some pieces leaves nothing behind."""


@value
class Request:
    transcript: Transcript
    tools: tuple[ToolSpec, ...] = ()
    may_call: bool = True
    """Whether the model may call the tools. They are sent even if not: the thread contains calls
    to them, and a vendor's cache holds only for an unchanged beginning of the request."""
    max_output_tokens: int | None = None
    """None: what the settings say of the model."""
    hint: str = ""
    """One more message of the user at the end of this request only, such as why the model is asked
    again. It is no part of the thread."""
    schema: dict[str, Any] | None = None
    """The JSON schema of the reply's text, for a structured answer."""
    effort: Effort | None = None
    """How much the model thinks before it replies. None: the effort that agiraph.toml sets for this
    model; if it sets none, the vendor's default."""
    temperature: float | None = None
    team: str = ""
    """The id of the team that asks. Calls that wait for a rate limit take turns by team."""
    longest_wait_s: float | None = None
    """How long the call may wait for a rate limit; None: as long as it takes."""


@value
class Reply:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    provider_data: ProviderData = NO_DATA
    """Stored with the turn: `thinking` to display, and `vendor` with the parts that one vendor
    wants back in later requests."""
    is_cut: bool = False
    """Whether the reply broke off: it reached the limit of output tokens, or the vendor withheld
    the rest."""
    model: str = ""
    """The name of the model that answered, where there was a choice."""
    after_lost: bool = False
    """Whether a try before it got no answer, although the vendor may charge for it."""

    def by(self, model: str, usage: Usage) -> "Reply":
        """Return the reply as that of this model, with this usage."""
        return Reply(
            text=self.text,
            calls=self.calls,
            usage=usage,
            provider_data=self.provider_data,
            is_cut=self.is_cut,
            model=model,
            after_lost=self.after_lost,
        )


class Model(Protocol):
    @property
    def name(self) -> str:
        """The name `provider/model`, as people write it."""
        ...

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        """Return one whole reply, or raise a `ModelError`. Cancelling ends the request at once."""
        ...


def parts_of(name: str) -> tuple[str, str]:
    """Return provider and model of a name, without the wrapper `text/`."""
    provider, _, model = name.removeprefix("text/").partition("/")
    return provider, model


def lost_usage(error: ModelGarbled) -> Usage:
    """Return what a reply cost that cannot be used."""
    tokens = error.input_tokens, error.output_tokens
    return Usage(input_tokens=tokens[0], output_tokens=tokens[1], is_estimated=True)
