"""Local server: a loopback server that tells of itself as one of the local model servers does."""

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from aiohttp import web


class LocalServer:
    """Answers the paths it is given with JSON, and others with 404; chat completions by status."""

    def __init__(
        self,
        paths: Mapping[str, Any],
        *,
        text: str = "Hello.",
        finishes: str = "",
        prompt_tokens: int = 100,
        refuses: tuple[int, str] | None = None,
        is_locked: bool = False,
    ) -> None:
        self._paths = paths
        self._text = text
        self._finishes = finishes
        """The summary of a native call of `finish`, which it then replies with."""
        self._prompt_tokens = prompt_tokens
        self._refuses = refuses
        self._is_locked = is_locked
        """Whether it refuses every question, not only those for a reply."""
        self._runner: web.AppRunner | None = None
        self.url = ""
        self.asked: list[str] = []

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_route("*", "/{path:.*}", self._tell)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _tell(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path}")
        if self._is_locked and self._refuses is not None:
            status, message = self._refuses
            return web.json_response({"error": {"message": message}}, status=status)
        if request.path not in self._paths:
            return web.json_response({"error": "not found"}, status=404)
        return web.json_response(self._paths[request.path])

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        if self._refuses is not None:
            status, message = self._refuses
            return web.json_response({"error": {"message": message}}, status=status)
        said: dict[str, Any] = {"role": "assistant", "content": self._text}
        if self._finishes:
            arguments = json.dumps({"summary": self._finishes, "reached": "yes"})
            made = {"name": "finish", "arguments": arguments}
            said["tool_calls"] = [{"id": "call_1", "type": "function", "function": made}]
        return web.json_response(
            {
                "id": "c1",
                "object": "chat.completion",
                "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": self._prompt_tokens, "completion_tokens": 5},
            }
        )


OLLAMA: Mapping[str, Any] = {
    "/v1/models": {"data": [{"id": "qwen3:8b", "owned_by": "library"}]},
    "/api/ps": {"models": []},
    "/api/show": {
        "parameters": 'num_ctx                        16384\nstop "<|im_end|>"',
        "capabilities": ["completion", "tools", "thinking"],
    },
}
LOADED: Mapping[str, Any] = {
    **OLLAMA,
    "/api/ps": {"models": [{"model": "qwen3:8b", "context_length": 4096}]},
}
LMSTUDIO: Mapping[str, Any] = {
    "/v1/models": {"data": [{"id": "gemma"}, {"id": "embed"}]},
    "/api/v0/models": {
        "data": [
            {"id": "gemma", "type": "vlm", "loaded_context_length": 12_000,
             "max_context_length": 131_072, "capabilities": ["tool_use"]},
            {"id": "embed", "type": "embeddings"},
        ]
    },
}  # fmt: skip
LLAMACPP: Mapping[str, Any] = {
    "/v1/models": {"data": [{"id": "smollm2", "owned_by": "llamacpp"}]},
    "/props": {"default_generation_settings": {"n_ctx": 8192}, "modalities": {"vision": False}},
    "/apply-template": {"prompt": "<|im_start|>user\nHello.<|im_end|>"},
}
VLLM: Mapping[str, Any] = {
    "/v1/models": {"data": [{"id": "qwen", "owned_by": "vllm", "max_model_len": 32_768}]}
}
SILENT: Mapping[str, Any] = {"/v1/models": {"data": [{"id": "m"}]}}
