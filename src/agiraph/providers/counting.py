"""Counting: notices a server whose chat template drops the tools without a word.

Such a server answers as if nothing had happened; only the count of the prompt tells.
"""

from dataclasses import dataclass

import orjson

from agiraph.domain.errors import ModelRefused
from agiraph.providers.base import Model, OnDelta, Reply, Request
from agiraph.providers.diagnosis import Diagnosis
from agiraph.providers.facts.server_facts import LLAMACPP, LMSTUDIO, OLLAMA

BYTES_PER_TOKEN = 4
LEAST_TOKENS = 800
"""Shorter prompts are not judged: the estimate is too rough for them."""
SHARE = 0.45
"""A count below this share of the estimate means that tools are missing; tokenizers differ less."""
_SILENT = frozenset((OLLAMA, LMSTUDIO, LLAMACPP))
"""The servers that are known to drop tools without an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A model on a server of one's own whose counts are compared with what was sent."""

    model: Model
    diagnosis: Diagnosis

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        reply = await self.model.reply(request, on_delta)
        if self.diagnosis.kind in _SILENT and (problem := self._missing_tools(request, reply)):
            raise ModelRefused(problem)
        return reply

    def _missing_tools(self, request: Request, reply: Reply) -> str:
        """Return that the server left the tools out of the prompt, and what to do; else ""."""
        counted = reply.usage.input_tokens
        if not counted or reply.usage.is_estimated:
            return ""
        spoken = _spoken_tokens(request)
        tools = _tool_tokens(request)
        if spoken + tools < LEAST_TOKENS or counted >= SHARE * (spoken + tools):
            return ""
        if not tools or counted < SHARE * spoken:
            return ""
        return (
            f"{self.diagnosis.place} shows the model no tools: of about {spoken + tools:,} tokens "
            f"it counted {counted:,}. {self.diagnosis.no_tools()}"
        )


def _spoken_tokens(request: Request) -> int:
    size = len(request.transcript.system.encode())
    for turn in request.transcript.spoken():
        size += len(turn.text.encode())
        size += sum(len(orjson.dumps(call.arguments)) for call in turn.calls)
    return size // BYTES_PER_TOKEN


def _tool_tokens(request: Request) -> int:
    told = ((tool.name, tool.description, tool.schema) for tool in request.tools)
    return sum(len(orjson.dumps(one)) for one in told) // BYTES_PER_TOKEN
