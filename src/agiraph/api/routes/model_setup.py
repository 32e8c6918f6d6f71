"""Model setup routes: an API key or a local model for the first start, tested before it is used;
and secrets that a person enters under a name."""

import asyncio
import ipaddress
from typing import Annotated, ClassVar

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api import model_setup
from agiraph.api.deps import Api, ApiDep
from agiraph.api.operations_views import DefaultModelRequest, KeyRequest, SetupView
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.domain.errors import Refused
from agiraph.home import named_secrets

router: APIRouter = api_router("models")


@router.post("/operations/keys", responses=documented(409))
async def set_api_key(body: KeyRequest, api: ApiDep, request: Request) -> SetupView:
    """Take an API key, test it with two small calls, and if it works store and use it.

    The key is written to a file of the home that only its owner can read, and never shown again.
    """
    _check_private(api, request)
    return await model_setup.set_key(api, body.key, provider=body.provider, model=body.model)


@router.delete("/operations/keys/{provider}", status_code=204, responses=documented(404))
async def remove_api_key(provider: Annotated[str, Path(max_length=100)], api: ApiDep) -> None:
    """Remove a stored API key. A key of the environment, if there is one, stays in use."""
    model_setup.remove_key(api, provider)


@router.post("/operations/default-model", responses=documented())
async def set_default_model(body: DefaultModelRequest, api: ApiDep) -> SetupView:
    """Test a model with two small calls, and if it answers make it the default of new teams."""
    return await model_setup.set_default(api, body.model)


class NewSecret(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"value": "correct horse"}}
    )

    value: str = Field(max_length=4000, repr=False)


@router.put("/secrets/{name}", status_code=204, responses=documented(409))
async def enter_secret(
    name: Annotated[str, Path(max_length=100)], body: NewSecret, api: ApiDep, request: Request
) -> None:
    """Keep a secret under a name. From now on it is hidden in all that is written and shown.

    Tools and MCP servers that ask for the name get it; agents and models never see it.
    """
    _check_private(api, request)
    known = named_secrets.NamedSecrets() if api.extensions is None else api.extensions.secrets
    await asyncio.to_thread(named_secrets.enter, api.home, known, name, body.value)


def _check_private(api: Api, request: Request) -> None:
    """Refuse a key that came over a network without encryption."""
    host = request.client.host if request.client else ""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not (is_loopback or api.access.is_secure):
        raise Refused(
            "A key is taken only over https, or on the machine that runs the server. Set it in the "
            "server's environment instead."
        )
