"""Vendor searches: recorded answers of the vendors' web searches, and a server that gives them.

Each vendor's answer holds the same two pages, in the vendor's own form.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from agiraph.core.domain.records.search import Hit
from agiraph.core.domain.work import Usage
from agiraph.models.searching import VendorEngine

KEY = "key-for-the-vendor"
FOUND = (
    Hit(
        title="Sound Bridge",
        url="https://works.example/bridge",
        snippet="The Sound Bridge opened on 14 May 2019.",
    ),
    Hit(
        title="Bridge open",
        url="https://herald.example/2019/bridge",
        snippet="It is 1,340 metres long.",
    ),
)
FIRST, SECOND = FOUND
_OPENAI_TEXT = (
    f"{FIRST.snippet} ([works.example]({FIRST.url}?utm_source=openai))\n\n- {SECOND.snippet} "
    f"([herald.example]({SECOND.url}?utm_source=openai))"
)


def _openai_note(hit: Hit, address: str) -> dict[str, Any]:
    start = _OPENAI_TEXT.index("([", _OPENAI_TEXT.index(hit.snippet))
    end = _OPENAI_TEXT.index("))", start) + 2
    note = {"type": "url_citation", "start_index": start, "end_index": end}
    return {**note, "title": hit.title, "url": address}


ANSWERS: dict[str, dict[str, Any]] = {
    "openrouter": {
        "id": "gen-1",
        "choices": [
            {
                "finish_reason": "stop",
                "message": {
                    "role": "assistant",
                    "content": "Two pages tell of it.",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url_citation": {
                                "url": hit.url,
                                "title": hit.title,
                                "content": f"{hit.snippet}\n",
                                "start_index": 0,
                                "end_index": 3,
                            },
                        }
                        for hit in FOUND
                    ],
                },
            }
        ],
        "usage": {
            "prompt_tokens": 1200,
            "completion_tokens": 60,
            "cost": 0.0213,
            "server_tool_use": {"web_search_requests": 1},
        },
    },
    "anthropic": {
        "type": "message",
        "role": "assistant",
        "stop_reason": "end_turn",
        "content": [
            {"type": "text", "text": "I will search."},
            {
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "web_search",
                "input": {"query": "sound bridge"},
            },
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [
                    {
                        "type": "web_search_result",
                        "url": hit.url,
                        "title": hit.title,
                        "page_age": "May 14, 2019",
                        "encrypted_content": "Eo8B",
                    }
                    for hit in FOUND
                ],
            },
            {
                "type": "text",
                "text": "It opened in 2019.",
                "citations": [
                    {
                        "type": "web_search_result_location",
                        "url": hit.url,
                        "title": hit.title,
                        "cited_text": hit.snippet,
                        "encrypted_index": "Eo8C",
                    }
                    for hit in FOUND
                ],
            },
        ],
        "usage": {
            "input_tokens": 9000,
            "output_tokens": 120,
            "server_tool_use": {"web_search_requests": 1},
        },
    },
    "openai": {
        "id": "resp_1",
        "status": "completed",
        "error": None,
        "output": [
            {"type": "reasoning", "summary": []},
            {
                "type": "web_search_call",
                "status": "completed",
                "action": {
                    "type": "search",
                    "query": "sound bridge",
                    "sources": [{"type": "url", "url": f"{FIRST.url}?utm_source=openai"}],
                },
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [
                    {
                        "type": "output_text",
                        "text": _OPENAI_TEXT,
                        "annotations": [
                            _openai_note(FIRST, f"{FIRST.url}?utm_source=openai"),
                            _openai_note(SECOND, f"{SECOND.url}?utm_source=openai"),
                        ],
                    }
                ],
            },
        ],
        "usage": {"input_tokens": 8000, "output_tokens": 300},
    },
    "gemini": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "It opened in 2019."}]},
                "groundingMetadata": {
                    "webSearchQueries": ["sound bridge"],
                    "groundingChunks": [
                        {"web": {"uri": hit.url, "title": hit.title}} for hit in FOUND
                    ],
                    "groundingSupports": [
                        {
                            "segment": {"startIndex": 0, "endIndex": 9, "text": hit.snippet},
                            "groundingChunkIndices": [index],
                        }
                        for index, hit in enumerate(FOUND)
                    ],
                },
            }
        ],
        "usageMetadata": {"promptTokenCount": 40, "candidatesTokenCount": 90},
    },
}
USAGES = {
    "openrouter": Usage(input_tokens=1200, output_tokens=60, usd=0.0213, searches=1),
    # A dollar for a million tokens of either kind, and ten or fourteen for a thousand searches.
    "anthropic": Usage(input_tokens=9000, output_tokens=120, usd=0.00912 + 0.01, searches=1),
    "openai": Usage(input_tokens=8000, output_tokens=300, usd=0.0083 + 0.01, searches=1),
    "gemini": Usage(input_tokens=40, output_tokens=90, usd=0.00013 + 0.014, searches=1),
}
"""What each recorded answer cost."""
PATHS = {
    "openrouter": "/chat/completions",
    "anthropic": "/v1/messages",
    "openai": "/responses",
    "gemini": "/v1beta/models/small:generateContent",
}


def failed(code: str) -> dict[str, Any]:
    """Return Anthropic's answer to a search that failed with this code."""
    content = {"type": "web_search_tool_result_error", "error_code": code}
    answer = json.loads(json.dumps(ANSWERS["anthropic"]))
    answer["content"] = [
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content}
    ]
    return answer


def paused() -> list[dict[str, Any]]:
    """Return Anthropic's answers to a search that it paused after the first block."""
    whole = ANSWERS["anthropic"]
    usage = {"input_tokens": 500, "output_tokens": 10}
    first = {**whole, "stop_reason": "pause_turn", "content": whole["content"][:2], "usage": usage}
    return [first, {**whole, "content": whole["content"][2:]}]


@dataclass
class Vendor:
    """The server of a vendor and the requests that it got."""

    engine: VendorEngine
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    paths: list[str] = field(default_factory=list[str])
    keys: list[str] = field(default_factory=list[str])


def _price(name: str, usage: Usage) -> float | None:
    assert usage.searches == 0
    return usage.tokens / 1_000_000


@asynccontextmanager
async def vendor(
    name: str, answer: Callable[[int], dict[str, Any]], *, status: int = 200
) -> AsyncIterator[Vendor]:
    """Serve one vendor's API on loopback. `answer` gets the number of the request, from 0."""

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        opened.paths.append(request.path)
        opened.keys += [value for value in request.headers.values() if KEY in value]
        opened.requests.append(body)
        return web.json_response(answer(len(opened.requests) - 1), status=status)

    app = web.Application()
    app.router.add_post("/{rest:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    opened = Vendor(
        VendorEngine(name=name, key=KEY, base_url=base_url, model="small", price=_price)
    )
    try:
        yield opened
    finally:
        await runner.cleanup()
