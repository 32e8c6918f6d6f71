"""LangGraph: its prebuilt agent; durable with the checkpointer for SQLite."""

from contextlib import AsyncExitStack
from pathlib import Path

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.prebuilt import create_react_agent

from bench.peers.noting import MODEL, noted


@tool
async def note(text: str) -> str:
    """Note a finding."""
    return noted()


class Peer:
    async def open(self, url: str, folder: Path, *, is_durable: bool) -> None:
        self._stack = AsyncExitStack()
        saver = (
            await self._stack.enter_async_context(
                AsyncSqliteSaver.from_conn_string(str(folder / "langgraph.db"))
            )
            if is_durable
            else InMemorySaver()
        )
        model = ChatOpenAI(model=MODEL, base_url=url, api_key="k", timeout=600)
        self._agent = create_react_agent(model, [note], checkpointer=saver)

    async def run(self, name: str, turns: int) -> None:
        config = {"configurable": {"thread_id": name}, "recursion_limit": 3 * turns + 10}
        await self._agent.ainvoke({"messages": [("user", "Take notes.")]}, config)

    async def close(self) -> None:
        await self._stack.aclose()
