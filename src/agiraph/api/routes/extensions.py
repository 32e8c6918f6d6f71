"""Extension routes: own tools, engines, channels and providers, and a person's consent to them."""

import asyncio

from fastapi import APIRouter

from agiraph.api.deps import Api, ApiDep, CallerDep, check_owner
from agiraph.api.extension_presenters import ContentId, content_view
from agiraph.api.extension_views import (
    ContentView,
    DisableRequest,
    EnableRequest,
    ExtensionView,
    OfferView,
)
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.extensions.finding import ExtensionStatus, content_of
from agiraph.extensions.loading import Extensions

router: APIRouter = api_router("extensions")


@router.get("/extensions")
async def list_extensions(api: ApiDep) -> list[ExtensionView]:
    """List the files and packages of the person, with the state of each one."""
    return [_view(one) for one in await _of(api).listed()]


@router.get("/extensions/content", responses=documented())
async def read_extension_content(id: ContentId, api: ApiDep, caller: CallerDep) -> ContentView:
    """Show the file of an extension in full, and what was enabled before. Needs `admin`."""
    check_owner(caller, "To read code of your own")
    return content_view(id, await asyncio.to_thread(content_of, api.home, id))


@router.post("/extensions/enable", responses=documented(409))
async def enable_extension(body: EnableRequest, api: ApiDep, caller: CallerDep) -> ExtensionView:
    """Enable an extension with exactly this content. Needs the scope `admin`.

    Its code then runs inside of the runtime.
    """
    check_owner(caller, "To enable code of your own")
    return _view(await _of(api).enable(body.id, sha256=body.sha256, at=api.clock.now()))


@router.post("/extensions/disable", responses=documented())
async def disable_extension(body: DisableRequest, api: ApiDep, caller: CallerDep) -> None:
    """Take the consent to an extension back. Needs the scope `admin`."""
    check_owner(caller, "To disable code of your own")
    await _of(api).disable(body.id)


def _of(api: Api) -> Extensions:
    return api.extensions or Extensions(home=api.home)


def _view(one: ExtensionStatus) -> ExtensionView:
    return ExtensionView(
        id=one.id,
        kind=one.kind,
        source=one.source,
        sha256=one.sha256,
        state=one.state,
        summary=one.summary,
        problem=one.problem,
        enabled_at=one.enabled_at,
        offers=[
            OfferView(
                name=offer.name,
                touches=offer.touches,
                effect=offer.effect,
                secrets=[*offer.secrets],
            )
            for offer in one.offers
        ],
    )
