"""Client: retries every request, with the same key, until the server acknowledges it."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

TOKEN = "a-token-of-32-characters-for-test"
PAGE = 500


@dataclass(slots=True, kw_only=True)
class Client:
    http: aiohttp.ClientSession
    origin: str
    tries: int = 0

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the answer to the first request that reached the server."""
        sent = {"Authorization": f"Bearer {TOKEN}"} | dict(headers or {})
        if key:
            sent["Idempotency-Key"] = key
        while True:
            self.tries += 1
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
                request = self.http.request(method, self.origin + path, json=body, headers=sent)
                async with request as response:
                    is_json = "json" in response.content_type
                    said = await (response.json() if is_json else response.text())
                    if response.status == 429:
                        await asyncio.sleep(float(response.headers["Retry-After"]))
                    elif response.status < 500:
                        assert response.status < 400, (method, path, body, said)
                        return said
            await asyncio.sleep(0.05)

    async def events(self, team: str, after: int = 0) -> list[Any]:
        got: list[Any] = []
        path = f"/api/teams/{team}/events?after="
        while page := await self.ask("GET", f"{path}{got[-1]['seq'] if got else after}"):
            got += page
        return got

    async def board(self, team: str) -> list[Any]:
        return await self._by_id(f"/api/teams/{team}/board")

    async def threads(self, agent: str) -> list[Any]:
        """Every thread of an agent, each with its turns."""
        found = await self._by_id(f"/api/agents/{agent}/threads")
        return [thread | {"turns": await self._turns(thread["id"])} for thread in found]

    async def conversation(self, agent: str) -> list[Any]:
        """Return all messages between the person and the agent, oldest first."""
        got: list[Any] = []
        path = f"/api/agents/{agent}/conversation?limit={PAGE}&before="
        while page := await self.ask("GET", path + (got[0]["id"] if got else "")):
            got = page + got
        return got

    async def inbox(self) -> list[Any]:
        got: list[Any] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await self.ask("GET", f"/api/inbox?limit={PAGE}&after={cursor}")
            got += page["items"]
            cursor = page["cursor"]
        return got

    async def _turns(self, thread: str) -> list[Any]:
        got: list[Any] = []
        path = f"/api/threads/{thread}?limit={PAGE}&after="
        while page := await self.ask("GET", f"{path}{got[-1]['seq'] if got else 0}"):
            got += page
        return got

    async def _by_id(self, path: str) -> list[Any]:
        got: list[Any] = []
        after = f"{path}?limit={PAGE}&after="
        while page := await self.ask("GET", after + (got[-1]["id"] if got else "")):
            got += page
        return got
