"""Fallback: a chain of models. Each is called only when the ones before it failed."""

from dataclasses import dataclass, field, replace

from agiraph.domain.errors import (
    ModelDeclined,
    ModelError,
    ModelGarbled,
    ModelUnavailable,
    QuotaSpent,
)
from agiraph.domain.work import Usage
from agiraph.providers.base import Model, OnDelta, Reply, Request, lost_usage

PASSED_ON = (ModelUnavailable, ModelGarbled, ModelDeclined, QuotaSpent)
"""Errors that another model may not have. A request that is wrong in itself is not passed on."""


@dataclass(slots=True)
class _Tried:
    """What the models said that gave no whole reply."""

    reasons: list[str] = field(default_factory=list[str])
    unused: bool = True
    lost: bool = False
    usage: Usage = Usage()

    def take(self, model: Model, error: ModelError) -> None:
        self.reasons.append(f"{model.name}: {error}")
        self.unused = self.unused and error.unused
        if isinstance(error, ModelGarbled):
            self.usage += lost_usage(error)
        elif isinstance(error, ModelUnavailable):
            self.lost = self.lost or not error.unused

    def with_cost(self, reply: Reply) -> Reply:
        """Return the reply with the cost of those that could not be used or never came."""
        if not self.usage.tokens and not self.lost:
            return reply
        lost = self.lost or reply.after_lost
        return replace(reply, usage=self.usage + reply.usage, after_lost=lost)

    def summed_up(self, last: Model, error: ModelError) -> ModelError:
        """Return the last model's error with the reasons of all models."""
        error.unused = self.unused and error.unused
        if self.reasons and isinstance(error, PASSED_ON):
            error.args = (" ".join([*self.reasons, f"{last.name}: {error}"]),)
        return error


@dataclass(frozen=True, slots=True)
class Fallback:
    """Returns the first whole reply. An answer that was withheld is asked of the next model."""

    models: tuple[Model, ...]

    @property
    def name(self) -> str:
        return ", ".join(model.name for model in self.models)

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        *first, last = self.models
        tried = _Tried()
        for model in first:
            try:
                reply = await model.reply(request, on_delta)
            # `on_delta` may have shown a part of this reply. That is display only: the whole reply,
            # when it is stored, takes its place.
            except PASSED_ON as error:
                tried.take(model, error)
                continue
            if not reply.provider_data.refusal:
                return tried.with_cost(reply)
            tried.usage += reply.usage  # half an answer; the next model answers without it
        try:
            return tried.with_cost(await last.reply(request, on_delta))
        except ModelError as error:
            raise tried.summed_up(last, error) from error
