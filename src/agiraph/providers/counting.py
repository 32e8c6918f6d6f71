"""Counting: notices a server that drops a part of the prompt without a word.

Ollama drops the beginning of a prompt that exceeds its context, and a chat template without tools
drops the tools. Both answer as if nothing had happened; only the count of the prompt tells.
"""

from dataclasses import dataclass

import orjson

from agiraph.domain.errors import ModelRefused
from agiraph.providers.base import Model, OnDelta, Reply, Request
from agiraph.providers.diagnosis import Diagnosis
from agiraph.providers.facts.asking import LLAMACPP, LMSTUDIO, OLLAMA

BYTES_PER_TOKEN = 4
LEAST_TOKENS = 800
"""Shorter prompts are not judged: the estimate is too rough for them."""
SHARE = 0.45
"""A count below this share of the estimate means that a part is missing; tokenizers differ less."""
_SILENT = frozenset((OLLAMA, LMSTUDIO, LLAMACPP))
"""The servers that are known to drop a part without an error."""


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
        if self.diagnosis.kind in _SILENT and (problem := self._missing_part(request, reply)):
            raise ModelRefused(problem)
        return reply

    def _missing_part(self, request: Request, reply: Reply) -> str:
        """Return what the server left out of the prompt, and what to do; empty if nothing."""
        counted = reply.usage.input_tokens
        if not counted or reply.usage.is_estimated:
            return ""
        spoken = _spoken_tokens(request)
        tools = _tool_tokens(request)
        if spoken + tools < LEAST_TOKENS or counted >= SHARE * (spoken + tools):
            return ""
        if tools and counted >= SHARE * spoken:
            return (
                f"{self.diagnosis.place} shows the model no tools: of about {spoken + tools:,} "
                f"tokens it counted {counted:,}. {self.diagnosis.no_tools()}"
            )
        return (
            f"{self.diagnosis.place} has dropped the beginning of the prompt: of about "
            f"{spoken + tools:,} tokens it counted {counted:,}. Set the context of this server: "
            f"{self.diagnosis.widen()}."
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
