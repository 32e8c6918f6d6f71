"""Own models: lets the runtime call a model provider that a person wrote in a file of their own."""

from dataclasses import dataclass, field
from typing import Any

from agiraph.core.domain.errors import (
    AgiraphError,
    Misconfigured,
    ModelGarbled,
    ModelUnavailable,
    Refused,
)
from agiraph.core.tools.own_code import ProviderDeclaration, Secrets
from agiraph.features.extensions.own_engines import check_name
from agiraph.features.extensions.results import error_text
from agiraph.features.extensions.signatures import bound
from agiraph.models.base import Model, OnDelta, Reply, Request
from agiraph.models.vendors import VENDOR_BY_NAME

_TAKEN = frozenset({"demo", "text", "scripted", "cli", "new"})


def check_provider(declared: ProviderDeclaration) -> None:
    """Raise `Refused` if something in a provider's declaration is wrong."""
    check_name("provider", declared.name)
    if declared.name in VENDOR_BY_NAME or declared.name in _TAKEN:
        raise Refused(f"the provider {declared.name!r} is one of agiraph; choose another name.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnModel:
    """A model of a person's provider. Its code runs on the runtime's event loop."""

    name: str
    inner: Any = field(repr=False)

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        """Return the reply of the person's code; any error of it becomes a `ModelError`."""
        try:
            reply = await self.inner.reply(request, on_delta)
        except AgiraphError:
            raise
        except Exception as error:
            raise ModelUnavailable(f"{self.name} failed: {error_text(error)}.") from error
        if not isinstance(reply, Reply):
            raise ModelGarbled(f"{self.name} returned a {type(reply).__name__}, not a Reply.")
        return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnProvider:
    """Makes the models of a provider that a person's file declares."""

    declared: ProviderDeclaration
    secrets: Secrets = field(repr=False)

    def __call__(self, model: str) -> Model:
        """Return the model of this name, or raise `Misconfigured` with what went wrong."""
        declared, name = self.declared, f"{self.declared.name}/{model}"
        try:
            inner = bound(declared, self.secrets)(model)
        except AgiraphError as error:
            raise Misconfigured(str(error)) from error
        except Exception as error:
            raise Misconfigured(f"{name} cannot be made: {error_text(error)}.") from error
        if not callable(getattr(inner, "reply", None)):
            raise Misconfigured(f"{name}: its provider returned an object without `reply`.")
        return OwnModel(name=name, inner=inner)
