"""Bare: a loop over aiohttp and SQLite, without a framework; the floor of the comparison."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import aiohttp

from bench.peers.noting import MODEL, noted

TOOL = {
    "type": "function",
    "function": {
        "name": "note",
        "description": "Note a finding.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
    },
}


class Peer:
    async def open(self, url: str, folder: Path, *, is_durable: bool) -> None:
        self._url = f"{url}/chat/completions"
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._db = sqlite3.connect(folder / "bare.db", isolation_level=None)
        self._db.execute("pragma journal_mode = wal")
        self._db.execute("pragma synchronous = full")
        self._db.execute("create table log (name text, body text)")
        self._is_durable = is_durable

    async def run(self, name: str, turns: int) -> None:
        thread: list[dict[str, Any]] = [{"role": "user", "content": "Take notes."}]
        for _ in range(turns):
            body = {"model": MODEL, "messages": thread, "tools": [TOOL]}
            async with self._http.post(self._url, json=body) as response:
                message = (await response.json())["choices"][0]["message"]
            self._keep(name, thread, message)
            calls = message.get("tool_calls") or ()
            for call in calls:
                answer = {"role": "tool", "tool_call_id": call["id"], "content": noted()}
                self._keep(name, thread, answer)
            if not calls:
                return

    def _keep(self, name: str, thread: list[dict[str, Any]], message: dict[str, Any]) -> None:
        thread.append(message)
        if self._is_durable:
            self._db.execute("insert into log values (?, ?)", (name, json.dumps(message)))

    async def close(self) -> None:
        await self._http.close()
        self._db.close()
