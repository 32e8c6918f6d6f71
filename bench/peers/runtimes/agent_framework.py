"""Microsoft Agent Framework: durable with its history in files, written at each model call."""

import warnings
from pathlib import Path

from agent_framework import Agent, FileHistoryProvider
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI

from bench.peers.noting import MODEL, noted


async def note(text: str) -> str:
    """Note a finding."""
    return noted()


class Peer:
    async def open(self, url: str, folder: Path, *, is_durable: bool) -> None:
        warnings.simplefilter("ignore")  # the history in files says that it is experimental
        self._client = AsyncOpenAI(base_url=url, api_key="k", timeout=600)
        client = OpenAIChatCompletionClient(
            MODEL,
            async_client=self._client,
            function_invocation_configuration={"max_iterations": 1000},
        )
        self._agent = Agent(
            client,
            "Take notes.",
            tools=[note],
            context_providers=[FileHistoryProvider(folder)] if is_durable else None,
            require_per_service_call_history_persistence=is_durable,
        )

    async def run(self, name: str, turns: int) -> None:
        session = self._agent.create_session(session_id=name.replace(" ", "-"))
        await self._agent.run("Go", session=session)

    async def close(self) -> None:
        await self._client.close()
