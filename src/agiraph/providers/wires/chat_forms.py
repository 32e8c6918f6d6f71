"""Chat forms: the deviations from OpenAI's chat completions API that a server needs, learned from
its refusals.

Templates of open models are stricter than OpenAI's API, and each in its own way. A server says so
with an error text; the request is sent again in the form it needs, which is kept for the life of
the process.
"""

import re
from collections.abc import Collection

from agiraph.domain.errors import ModelError
from agiraph.providers.wires.request_buffer import Part

_FORMS: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for name, pattern in {
        # Settings that some models of OpenAI want otherwise: reasoning models refuse `max_tokens`,
        # and some refuse tools unless reasoning is off.
        "max_completion_tokens": r"use 'max_completion_tokens' instead",
        "reasoning_effort": r"set reasoning_effort to 'none'",
        # Old servers know no `stream_options`, and each model has its own highest limit.
        "no_stream_options": r"\bstream_options\b",
        "no_default_limit": r"max_(?:completion_)?tokens\b.{0,120}(?:too large|exceed|at most|less"
        r" than or equal|must be <=|invalid)|at most \d+ completion tokens",
        # Mistral, and templates of llama.cpp, vLLM and LM Studio.
        "assistant_after_tool": r"role '?user'? after (?:role )?'?tool'?",
        "alternate": r"roles must alternate|must alternate (?:between )?user",
        "no_system": r"system (?:role|messages?) (?:is |are )?not supported"
        r"|not support (?:the )?system (?:role|messages?)",
        "nine_letter_ids": r"a-z, ?A-Z, ?0-9,? with a length of 9",
        # DeepSeek and others that think.
        "reasoning_required": r"reasoning_content.{0,80}(?:must be passed|required|missing|must be"
        r" provided)|missing.{0,40}reasoning_content",
        "reasoning_refused": r"reasoning(?:_content|_details)?\b.{0,80}(?:not permitted|unsupported"
        r"|not supported|not allowed)|(?:unknown|unsupported|unexpected|extra)\b.{0,60}"
        r"\breasoning_(?:content|details)",
    }.items()
}
"""By name, the error texts with which servers ask for each form."""
MESSAGE_FORMS = frozenset(
    ("assistant_after_tool", "alternate", "no_system", "nine_letter_ids", "reasoning_required",
     "reasoning_refused", "foreign_as_text")
)  # fmt: skip
"""The forms that change the messages of a thread."""
_UNDERSTOOD: Part = {"role": "assistant", "content": "Understood."}
_GO_ON: Part = {"role": "user", "content": "Go on."}


def wanted_forms(error: ModelError, known: Collection[str]) -> set[str]:
    """Return the forms that a server asks for with this error and that are not in use yet."""
    text = str(error)
    wanted = {name for name, pattern in _FORMS.items() if pattern.search(text)}
    if "reasoning_required" in wanted:
        wanted.discard("reasoning_refused")
        if "reasoning_required" in known:  # an empty one was not enough
            wanted.add("foreign_as_text")
    return wanted - set(known)


def filler(forms: Collection[str], before: str, role: str) -> Part | None:
    """Return the message that a strict template needs between two messages of these roles."""
    if not forms:
        return None
    if role == "user" and before == "tool":
        return _UNDERSTOOD if {"assistant_after_tool", "alternate"} & {*forms} else None
    if "alternate" not in forms:
        return None
    if role == "user" and before == "user":
        return _UNDERSTOOD
    return _GO_ON if role == "assistant" and before in ("", "system", "assistant") else None
