"""Model routes: the models that can be used, what they can do, and a test of one."""

import asyncio
from typing import ClassVar

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api import model_tests
from agiraph.api.deps import ApiDep
from agiraph.api.model_presenters import models_view, test_view
from agiraph.api.model_views import ModelsView, ModelTestView
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.home import stored_keys
from agiraph.providers.probe import OTHERS

router: APIRouter = api_router("models")


class ModelTestRequest(BaseModel):
    """Names the model to test."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"model": "ollama/qwen3:8b"}}
    )

    model: str = Field(min_length=1, max_length=200)


@router.get("/models")
async def list_models(api: ApiDep) -> ModelsView:
    """List the providers with their models. Servers of your own are asked what they have."""
    tests = await asyncio.to_thread(model_tests.kept, api.home)
    stored = await asyncio.to_thread(stored_keys.read, api.home.path)
    return await models_view(api.models, api.model, tests, stored.keys)


@router.post("/models/test", responses=documented(422))
async def run_model_test(body: ModelTestRequest, api: ApiDep) -> ModelTestView:
    """Call a model once each for words, a tool call, a schema and its cache. It costs a little.

    The result is kept in the home, as the model's last test.
    """
    test = await test_view(api.models, body.model, api.clock, OTHERS)
    await asyncio.to_thread(model_tests.keep, api.home, test)
    return test
