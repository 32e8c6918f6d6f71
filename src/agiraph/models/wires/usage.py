"""Usage: reads the token counts and prices of a response, and replaces impossible ones."""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from agiraph.core.domain.errors import PromptCut
from agiraph.core.domain.work import MOST_TOKENS, MOST_USD, Usage
from agiraph.models.base import Reply, Request
from agiraph.models.wires.reply_builder import ReplyBuilder

log: logging.Logger = logging.getLogger("agiraph.models")

BYTES_PER_TOKEN = 4
"""The ratio of an estimate; English text has about this many bytes per token."""
ATTACHMENT_BYTES = 1_600 * BYTES_PER_TOKEN
"""What a picture or file counts as in an estimate: about 1,600 tokens."""
LETTERS_PER_TOKEN = 8
"""More than any tokenizer puts into a token on average; English text has 3.5 without its spaces."""
MIN_COUNTED_TOKENS = 1_000
"""A smaller count is not that of a cut prompt: no server has so small a window. Some count only
what was not in their cache."""
_warned: set[str] = set()
"""The models with impossible counts: each is warned about once per process."""


class UsageReader:
    """Reads the usage object of a response and collects the values that cannot be counts."""

    def __init__(self, usage: Any, doubts: list[str] | None = None) -> None:
        self.doubts: list[str] = [] if doubts is None else doubts
        self._fields: dict[str, Any] = {}
        if isinstance(usage, dict):
            self._fields = cast(dict[str, Any], usage)
        elif usage is not None:
            self.doubts.append(f"usage is {usage!r:.60}")

    def part(self, name: str) -> "UsageReader":
        """Return a reader of the nested object `name`. Its doubts are added to this reader's."""
        found = self._fields.get(name)
        return _NO_COUNTS if found is None else UsageReader(found, self.doubts)

    def tokens(self, name: str) -> int:
        """Return the token count in a field; 0 if it is missing or cannot be true."""
        value = self._fields.get(name)
        if value is None:
            return 0
        # JSON's `true` is an int to Python. Counts end up in budgets: a negative or huge one would
        # make a team free, or stop it.
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
            return value
        self.doubts.append(f"{name} is {value!r:.60}")
        return 0

    def usd(self, name: str) -> float | None:
        """Return the price in a field; None if it is missing or cannot be true."""
        value = self._fields.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return float(value) if 0 <= value <= MOST_USD and math.isfinite(value) else None


_NO_COUNTS = UsageReader(None)


def openai_usage(counts: UsageReader, prompt: str, completion: str) -> Usage:
    """Return the counts of OpenAI's two APIs, which name only the prompt and its completion
    differently."""
    read = counts.part(f"{prompt}_tokens_details")
    return Usage(
        input_tokens=counts.tokens(f"{prompt}_tokens"),
        output_tokens=counts.tokens(f"{completion}_tokens"),
        cached_tokens=read.tokens("cached_tokens"),
        # Anthropic's models behind OpenRouter have it; other servers leave it out.
        cache_write_tokens=read.tokens("cache_write_tokens"),
        thinking_tokens=counts.part(f"{completion}_tokens_details").tokens("reasoning_tokens"),
        usd=counts.usd("cost"),
    )


def checked(
    reply: Reply, doubts: Sequence[str], *, request: Request, model: str, sent_bytes: int
) -> Reply:
    """Return the reply with counts that can be true.

    Counts that are missing or in doubt are estimated from the length of the texts and marked.
    """
    usage = reply.usage
    received = _received_bytes(reply) if not usage.output_tokens or doubts else 0
    lacks_output = not usage.output_tokens and received > 0
    if not doubts and usage.input_tokens and not lacks_output:
        return reply
    _warn(model, doubts)
    if doubts or not usage.input_tokens:
        sent = max(sent_bytes - _attached_bytes(request), 0)
        usage = replace(
            Usage() if doubts else usage, input_tokens=sent // BYTES_PER_TOKEN + 1, cached_tokens=0
        )
    if doubts or lacks_output:
        usage = replace(usage, output_tokens=received // BYTES_PER_TOKEN + 1)
    return replace(reply, usage=replace(usage, is_estimated=True).bounded())


def estimate(received: ReplyBuilder, request: Request, sent_bytes: int) -> Usage:
    """Return what a reply cost that cannot be used, from the length of what arrived."""
    sent = max(sent_bytes - _attached_bytes(request), 0)
    length = len(str(received.text)) + len(str(received.thinking))
    usage = Usage(
        input_tokens=received.usage.input_tokens or sent // BYTES_PER_TOKEN + 1,
        output_tokens=received.usage.output_tokens or length // BYTES_PER_TOKEN + 1,
        is_estimated=True,
    )
    return usage.bounded()


def _warn(model: str, doubts: Sequence[str]) -> None:
    if model in _warned:
        return
    _warned.add(model)
    what = "reports no token counts"
    if doubts:
        what = f"reports token counts that cannot be true ({'; '.join(doubts)})"
    log.warning(
        "%s %s. Tokens and prices of such replies are estimated from their length. Check this "
        "server or its proxy.",
        model,
        what,
    )


def _received_bytes(reply: Reply) -> int:
    texts = [reply.text, reply.provider_data.thinking]
    texts += [f"{call.name} {call.malformed or call.arguments}" for call in reply.calls]
    return len("".join(texts).encode(errors="replace"))


def _attached_bytes(request: Request) -> int:
    """Return the bytes of pictures and files, beyond those of the tokens that they count as."""
    sizes = [len(a.data) for turn in request.transcript.spoken() for a in turn.attachments]
    return sum(max(size - ATTACHMENT_BYTES, 0) for size in sizes)


def check_prompt(usage: Usage, *, request: Request, model: str, sent_bytes: int) -> None:
    """Raise `PromptCut` if the server counted far fewer tokens than the prompt can have.

    Ollama, for one, drops the beginning of a prompt that exceeds its window and says nothing.
    """
    counted = usage.input_tokens
    if usage.cached_tokens > counted:  # counted apart
        counted += usage.cached_tokens
    # Almost every request ends here. The bytes are at least as many as the letters.
    if counted < MIN_COUNTED_TOKENS or counted * LETTERS_PER_TOKEN > sent_bytes:
        return
    letters = _letters(request)
    if letters < counted * LETTERS_PER_TOKEN:
        return
    server, needed = model.partition("/")[0], letters // 3
    raise PromptCut(
        f"{model} counted {counted:,} tokens of a prompt that has about {needed:,}: the server "
        f"dropped a part of it and did not say so. Set the context of this server to at least "
        f"{needed + needed // 2:,} tokens (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx of the model; "
        f"other servers: their context length), or set `window` in [servers.{server}] or "
        f'[models."{model}"] of agiraph.toml to the context that the server has.'
    )


def _letters(request: Request) -> int:
    """Return the characters of the thread's texts, without white space."""
    transcript = request.transcript
    texts = [transcript.system]
    for turn in transcript.spoken():
        texts += [turn.text, *(str(call.arguments) for call in turn.calls)]
    return sum(len(word) for text in texts for word in text.split())
