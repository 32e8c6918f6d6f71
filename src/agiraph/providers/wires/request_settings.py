"""Request settings: the optional settings of a request, and which of them a server has refused."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agiraph.domain.effort import Effort, first_effort
from agiraph.domain.errors import KeyRefused, ModelMissing, ModelRefused, QuotaSpent
from agiraph.providers.base import Reply, Request
from agiraph.providers.options import ModelOptions

log: logging.Logger = logging.getLogger("agiraph.providers")

Part = dict[str, Any]
Ladder = Callable[[Effort], Sequence[Part]]
"""Returns the forms of an effort in one API, the best first. A refused form is followed by the
next one, and the last by none."""
Attempt = Callable[["Settings"], Awaitable[Reply]]

_EFFORT_WORDS = ("effort", "thinking", "reasoning", "chat_template_kwargs", "unknown name",
                 "extra inputs", "extra_forbidden", "unrecognized")  # fmt: skip
"""Words in the error of a server that refuses a setting for thinking."""
_ONLY_NOW = ("must start with a thinking block", "expected `thinking`")
"""Anthropic's words for a thread that cannot be continued with thinking at this point: another
model made the calls that wait for their results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The optional settings of one request, in the form of its wire."""

    effort: Part = field(default_factory=dict[str, Any])
    """The fields that say how much the model thinks; empty: none are sent."""
    temperature: float | None = None
    max_output_tokens: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields from the settings file, to be merged into the request."""


@dataclass(slots=True)
class Refusals:
    """What a model's server has refused, for the life of the process."""

    forms: dict[Effort, int] = field(default_factory=dict[Effort, int])
    """By effort: how many of its forms were refused."""
    takes_temperature: bool = True

    def form(self, ladder: Ladder, effort: Effort | None) -> Part:
        """Return the form of the effort that was not refused yet; empty if there is none."""
        if effort is None:
            return {}
        forms, refused = ladder(effort), self.forms.get(effort, 0)
        return forms[refused] if refused < len(forms) else {}

    def give_up(self, form: Part, ladder: Ladder, effort: Effort, why: str) -> None:
        """Ask for an effort in its next form, unless another request has found that out already."""
        if self.form(ladder, effort) != form:
            return
        self.forms[effort] = self.forms.get(effort, 0) + 1
        instead = self.form(ladder, effort) or "its own default"
        log.warning(
            "A model refuses the effort %r as %s; from now on it is asked with %s. %s",
            effort,
            form,
            instead,
            why,
        )


def plain(request: Request) -> Settings:
    """Return the settings of a request to a model without options, at no special effort."""
    return Settings(temperature=request.temperature, max_output_tokens=request.max_output_tokens)


async def ask(
    attempt: Attempt,
    request: Request,
    *,
    name: str,
    options: ModelOptions,
    refusals: Refusals,
    ladder: Ladder,
) -> Reply:
    """Send the request with its settings; if the server refuses one of them, send it without.

    What was refused is not asked for again in this process, and one warning says so.
    """
    effort = first_effort(request.effort, options.effort)
    temperature = options.temperature if request.temperature is None else request.temperature
    limit = request.max_output_tokens or options.max_output_tokens
    may_think = True
    while True:
        settings = Settings(
            effort=refusals.form(ladder, effort) if may_think else {},
            temperature=temperature if refusals.takes_temperature else None,
            max_output_tokens=limit,
            body=options.body,
        )
        try:
            return await attempt(settings)
        except (KeyRefused, ModelMissing, QuotaSpent):
            raise
        except ModelRefused as error:
            said = str(error).lower()
            if settings.temperature is not None and "temperature" in said:
                refusals.takes_temperature = False
                log.warning("%s takes no temperature, so none is sent: %s", name, error)
            elif settings.effort and any(words in said for words in _ONLY_NOW):
                may_think = False
            elif effort and settings.effort and any(words in said for words in _EFFORT_WORDS):
                refusals.give_up(settings.effort, ladder, effort, f"{name}: {error}")
            else:
                raise
