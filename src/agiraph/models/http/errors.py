"""HTTP errors: the `ModelError` that a vendor's error response means."""

import re
from typing import Any, cast

import orjson

from agiraph.core.domain.errors import (
    ContextExceeded,
    KeyRefused,
    ModelError,
    ModelMissing,
    ModelRefused,
    ModelUnavailable,
    QuotaSpent,
)
from agiraph.late_patterns import late

_NOT_CHARGED = frozenset(range(400, 500)) - {408, 499} | {503, 529}
"""Statuses with which a server refuses a request before a model works on it. Other errors may come
later and cost money: a gateway that gave up (408, 499, 502, 504), a model that crashed (500)."""

_OVERFLOW = ("context_length", "context length", "context window", "maximum context", "too long",
             "exceed_context_size", "request too large", "input token count",
             "available context size", "maximum prompt length", "maximum model length")  # fmt: skip
"""Parts of the messages with which vendors say that a thread exceeds the context window."""
_OVERFLOW_ANYWHERE = ("available context size", "context size has been exceeded",
                      "larger than the max context size", "exceed_context_size",
                      "greater than the context length", "context the overflows")  # fmt: skip
"""The words of llama.cpp and what is built on it, which older versions send with status 500."""
_MISSING_MODEL = late(
    r"model[_ ]not[_ ]found|invalid model|not a valid model|unknown model|no such model"
    r"|model\b.{0,200}\b(?:does not exist|not found|is not supported|not available)"
    r"|does not have access to (?:the )?model",
    re.IGNORECASE | re.DOTALL,
)
"""Messages with which servers that answer 400 or 403 say that they have no model of this name."""
_WRONG_KEY = late(
    r"(?:incorrect|invalid|wrong) (?:x-)?api[-_ ]?key"
    r"|api[-_ ]?key (?:is )?(?:not valid|invalid|expired)",
    re.IGNORECASE,
)
"""Messages with which Gemini and xAI, which answer 400, say that they do not accept the key."""
NO_TOOLS = late(
    r"does not support (?:tools?\b|function)|no endpoints found that support tool use"
    r"|\btools?[`'\"]? (?:is|are) not supported|tools? param.{0,40}requires"
    r"|(?:tool|function)[ _-](?:calling|use)\b.{0,40}(?:not supported|unsupported|not enabled)"
    r"|--enable-auto-tool-choice|--jinja",
    re.IGNORECASE | re.DOTALL,
)
"""Matches the error messages of servers whose model cannot call tools."""
_NO_MONEY = re.compile(
    rb"insufficient[_ ](?:quota|balance|credits?|funds)|credit balance is too low|billing_error"
    rb"|billing_hard_limit|billing_not_active|exceeded_current_quota|out of credits|no credits left"
    rb"|used all available credits|(?:monthly|spend(?:ing)?|usage) (?:spend(?:ing)? )?limits?\b"
    rb"|payment[_ ]required|account (?:\S+ )?(?:is|has been) suspended|arrearage|please recharge"
    rb"|freetieronly|key limit exceeded|quota_exceeded",
    re.IGNORECASE,
)
"""Messages and codes with which vendors say that an account has no money or quota left: OpenAI,
Anthropic, DeepSeek, Kimi, GLM, DashScope, OpenRouter, xAI and others."""
_NO_QUOTA_TODAY = re.compile(rb"per[-_ ]?day|daily|per[-_ ]?month|monthly", re.IGNORECASE)
"""Words for a quota that starts anew tomorrow or next month, such as Gemini's quota ids."""
_PLAN = re.compile(rb"check your plan and billing", re.IGNORECASE)
"""OpenAI and Kimi say this for no money; Gemini says it for every rate limit, with a delay."""
MAX_RATE_WAIT_S = 3600.0
"""A wait that a server asks for in a header is that of a rate limit up to this length."""
_RETRY_DELAY = re.compile(rb'"retryDelay"\s*:\s*"([0-9.]+)s"')


def error_for_status(
    status: int,
    reason: str,
    message: str,
    *,
    retry_after: float | None = None,
    body: bytes = b"",
    has_retry_header: bool = False,
) -> ModelError:
    """Return the error for a status; its class says whether a retry may help.

    `has_retry_header`: the wait comes from a Retry-After header and not from the body.
    """
    wait = retry_after if has_retry_header else None
    if _is_quota(status, body or reason.encode(), wait, has_delay=retry_after is not None):
        error: ModelError = QuotaSpent(
            f"{sentence(message)} The account of this provider has no money or quota left. Add "
            "credit or raise its limit, or choose another model."
        )
    else:
        error = _error_class(status, reason, message, retry_after)
    error.unused = status in _NOT_CHARGED
    return error


def _is_quota(status: int, body: bytes, header_wait: float | None, *, has_delay: bool) -> bool:
    """Whether an error means that there is no money or quota, and not that a rate is too high."""
    if status == 402:
        return True
    if status not in (400, 403, 429):
        return False
    if _NO_MONEY.search(body):
        return True
    if status != 429 or (header_wait is not None and header_wait <= MAX_RATE_WAIT_S):
        return False
    # Gemini names a delay of some seconds even for the quota of a day, so the words decide there.
    return bool(_NO_QUOTA_TODAY.search(body) or (_PLAN.search(body) and not has_delay))


def sentence(text: str) -> str:
    """Return the text with a full stop if it ends with no mark."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _error_class(status: int, reason: str, message: str, retry_after: float | None) -> ModelError:
    said = reason.lower()
    if status == 413 or (status == 400 and any(text in said for text in _OVERFLOW)):
        return ContextExceeded(message)
    if status >= 400 and any(text in said for text in _OVERFLOW_ANYWHERE):
        return ContextExceeded(message)
    # The vendors' own SDKs retry 408, 409 (a lock timed out on their side) and 429 as well.
    if status in (408, 409, 425, 429) or status >= 500:
        return ModelUnavailable(message, retry_after=retry_after)
    if NO_TOOLS.search(reason):  # OpenRouter says it with 404, as it does of unknown models
        return ModelRefused(sentence(message))
    is_missing = status in (400, 403) and _MISSING_MODEL.search(reason) is not None
    if is_wrong_key(status, reason) and not is_missing:
        return KeyRefused(f"{sentence(message)} Check the key of this provider.")
    if status == 404 or is_missing:
        return ModelMissing(
            f"{sentence(message)} Check the model's name and the provider's address."
        )
    return ModelRefused(message)


def is_wrong_key(status: int, reason: str) -> bool:
    """Whether an error response means that the server does not accept the key."""
    return status in (401, 403) or (status == 400 and _WRONG_KEY.search(reason) is not None)


def delay_in_body(raw: bytes) -> str:
    """Return the seconds to wait that Google names in the error's body, not in a header."""
    found = _RETRY_DELAY.search(raw)
    return found[1].decode() if found else ""


def error_text(raw: bytes) -> str:
    """Return the message of an error response, whichever vendor's shape it has."""
    try:
        body: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw[:300].decode(errors="replace").strip() or "nothing"
    # Gemini may send the error object inside a list.
    if isinstance(body, list) and body and isinstance(body[0], dict):
        body = cast(list[Any], body)[0]
    for key in ("error", "message"):
        if isinstance(body, dict) and key in body:
            body = cast(dict[str, Any], body)[key]
    return str(cast(object, body))[:500]
