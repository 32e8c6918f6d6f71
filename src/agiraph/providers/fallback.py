"""Fallback: a chain of models. Each is called only when the ones before it failed."""

from dataclasses import dataclass

from agiraph.domain.errors import ModelError, ModelGarbled, ModelUnavailable
from agiraph.providers.base import Model, OnDelta, Reply, Request


@dataclass(frozen=True, slots=True)
class Fallback:
    """Returns the first reply. A refused request is not passed on: it is wrong in itself."""

    models: tuple[Model, ...]

    @property
    def name(self) -> str:
        return ", ".join(model.name for model in self.models)

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        *first, last = self.models
        reasons: list[str] = []
        unused = True
        for model in first:
            try:
                return await model.reply(request, on_delta)
            # `on_delta` may have shown a part of this reply. That is display only: the whole reply,
            # when it is stored, takes its place.
            except (ModelUnavailable, ModelGarbled) as error:
                reasons.append(f"{model.name}: {error}")
                unused = unused and error.unused
        try:
            return await last.reply(request, on_delta)
        except ModelUnavailable as error:
            message = " ".join([*reasons, f"{last.name}: {error}"])
            unused = unused and error.unused
            raise ModelUnavailable(message, retry_after=error.retry_after, unused=unused) from error
        except ModelError as error:
            error.unused = unused and error.unused
            raise
