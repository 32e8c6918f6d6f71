"""The OpenAI Agents SDK: durable with its session for SQLite."""

from pathlib import Path

from openai import AsyncOpenAI

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from bench.peers.noting import MODEL, noted


@function_tool
async def note(text: str) -> str:
    """Note a finding."""
    return noted()


class Peer:
    async def open(self, url: str, folder: Path, *, is_durable: bool) -> None:
        set_tracing_disabled(disabled=True)
        self._client = AsyncOpenAI(base_url=url, api_key="k", timeout=600)
        model = OpenAIChatCompletionsModel(MODEL, self._client)
        self._agent = Agent(name="noter", instructions="Take notes.", tools=[note], model=model)
        self._file = folder / "sessions.db" if is_durable else None

    async def run(self, name: str, turns: int) -> None:
        session = SQLiteSession(name, self._file) if self._file else None
        await Runner.run(self._agent, "Go", session=session, max_turns=turns + 1)

    async def close(self) -> None:
        await self._client.close()
