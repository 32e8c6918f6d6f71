"""Fallback: a chain of models, each asked only when the one before could not answer."""

from dataclasses import dataclass

from agiraph.domain.errors import ModelError, ModelGarbled, ModelUnavailable
from agiraph.providers.base import Model, OnDelta, Reply, Request


@dataclass(frozen=True, slots=True)
class Fallback:
    """The first model that answers. A request that is wrong in itself is not passed on."""

    models: tuple[Model, ...]

    @property
    def name(self) -> str:
        return ", ".join(model.name for model in self.models)

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        *first, last = self.models
        said: list[str] = []
        unused = True
        for model in first:
            try:
                return await model.reply(request, on_delta)
            except (ModelUnavailable, ModelGarbled) as error:
                said.append(f"{model.name}: {error}")
                unused = unused and error.unused
        try:
            return await last.reply(request, on_delta)
        except ModelUnavailable as error:
            whole = " ".join([*said, f"{last.name}: {error}"])
            unused = unused and error.unused
            raise ModelUnavailable(whole, retry_after=error.retry_after, unused=unused) from error
        except ModelError as error:
            error.unused = unused and error.unused
            raise
