"""Models: what models there are, what they can do, and a test of one."""

from agiraph.api.model_views import ModelsView, ModelTestView
from agiraph.client.connection import Connection


class ModelCalls(Connection):
    async def models(self) -> ModelsView:
        """List the providers with their models."""
        return await self.get(ModelsView, "/models")

    async def test_model(self, model: str) -> ModelTestView:
        """Call a model once each for words, a tool call, a schema and its cache."""
        return await self.post(ModelTestView, "/models/test", {"model": model})
