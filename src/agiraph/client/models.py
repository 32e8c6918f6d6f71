"""Models: what models there are, what they can do, and a test of one."""

from agiraph.api.server_views import ModelsView, ModelTestView, SetupView
from agiraph.client.connection import Connection, path_of


class ModelCalls(Connection):
    async def models(self) -> ModelsView:
        """List the providers with their models."""
        return await self.get(ModelsView, "/models")

    async def test_model(self, model: str) -> ModelTestView:
        """Call a model once each for words, a tool call, a schema and its cache."""
        return await self.post(ModelTestView, "/models/test", {"model": model})

    async def set_api_key(self, key: str, *, provider: str = "", model: str = "") -> SetupView:
        """Give the server an API key. It is tested, and if the model answers, stored and used."""
        body = {"key": key, "provider": provider, "model": model}
        return await self.post(SetupView, "/operations/keys", body)

    async def remove_api_key(self, provider: str) -> None:
        """Remove the stored API key of a provider, which is then used with the key of the
        environment, if there is one."""
        await self.ask("DELETE", path_of("operations", "keys", provider))

    async def set_default_model(self, model: str) -> SetupView:
        """Test a model, and if it answers make it the default of new teams."""
        return await self.post(SetupView, "/operations/default-model", {"model": model})
