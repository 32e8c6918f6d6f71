"""Effort: how much a model thinks, in the form that each API wants it.

Each function returns the forms of an effort, the best first: a server may refuse one.
"""

import re
from collections.abc import Sequence
from typing import Any

from agiraph.core.domain.work import Effort

Part = dict[str, Any]

_LEVELS: dict[Effort, tuple[str, ...]] = {
    "none": ("none", "minimal", "low"),
    "low": ("low",),
    "medium": ("medium",),
    "high": ("high",),
    "max": ("max", "xhigh", "high"),
}
"""OpenAI's names. Newer models know `max`, older ones end at `xhigh` or `high`; not all of them
can do without thinking."""

_BUDGETS: dict[Effort, int] = {"low": 2_048, "medium": 8_192, "high": 16_384, "max": 24_576}
"""Tokens of thinking, for models that want a number."""

_ADAPTIVE = re.compile(r"claude-(?:mythos-|(?:[a-z]+-)?(?:4-[6-9]|[5-9]|\d\d)(?!\d))")
"""Claude models that decide themselves how much to think: Opus and Sonnet from 4.6 on, Mythos, and
all models from 5 on. Those from Opus 4.7 on refuse a budget (Anthropic and Amazon Bedrock, adaptive
thinking)."""
_BY_EFFORT = re.compile(r"claude-opus-4-5")
"""Claude Opus 4.5 has a budget and an effort."""
_LEVELLED_GEMINI = re.compile(r"gemini-(?:[3-9]|\d\d)")
"""Gemini models with levels in place of a budget; both in one request are refused."""
_GEMINI_PRO_MOST = 32_768
"""The largest budget of Gemini 2.5 Pro; Flash and Flash Lite end at 24,576 (Gemini API,
thinking)."""


def responses(effort: Effort) -> Sequence[Part]:
    """Return the forms for OpenAI's Responses API."""
    if effort == "none":
        return [{"effort": level} for level in _LEVELS[effort]]
    # Without `summary` OpenAI keeps all thoughts to itself. Some accounts may not ask for it.
    forms = [{"effort": level, "summary": "auto"} for level in _LEVELS[effort]]
    return [*forms, {"effort": _LEVELS[effort][-1]}]


def anthropic(model: str, effort: Effort) -> Sequence[Part]:
    """Return the forms for Anthropic's Messages API: the fields `thinking` and `output_config`."""
    if not _ADAPTIVE.match(model):
        if effort == "none":
            return []  # these models think only if they are asked to
        budget: Part = {"thinking": {"type": "enabled", "budget_tokens": _BUDGETS[effort]}}
        if _BY_EFFORT.match(model):
            level = "high" if effort == "max" else effort
            return [{**budget, "output_config": {"effort": level}}, budget]
        return [budget]
    if effort == "none":
        low = {"output_config": {"effort": "low"}}
        # Sonnet 5.5 calls it `between_tools`. Opus 5.5 and Fable 5 always think.
        modes = ("disabled", "between_tools")
        return [*({"thinking": {"type": mode}} for mode in modes), low]
    # Unless `display` is set, Anthropic's newest models send thinking blocks with no text in them.
    shown = {"type": "adaptive", "display": "summarized"}
    levels = ("max", "high") if effort == "max" else (effort,)
    forms: list[Part] = [
        {"thinking": shown, "output_config": {"effort": level}} for level in levels
    ]
    return [*forms, {"thinking": {"type": "adaptive"}, "output_config": {"effort": levels[-1]}}]


def gemini(model: str, effort: Effort) -> Sequence[Part]:
    """Return the forms of Google's `thinkingConfig`."""
    if _LEVELLED_GEMINI.match(model):
        if effort == "none":
            return [{"thinkingLevel": "minimal"}, {"thinkingLevel": "low"}]
        level = "high" if effort == "max" else effort
        # Pro models of the first 3.x versions know only low and high.
        return [
            {"thinkingLevel": name, "includeThoughts": True}
            for name in dict.fromkeys((level, "high" if level == "medium" else level))
        ]
    if effort == "none":
        return [{"thinkingBudget": 0}, {"thinkingBudget": 128}]  # Pro cannot do without
    most = _GEMINI_PRO_MOST if effort == "max" and "-pro" in model else _BUDGETS[effort]
    return [{"thinkingBudget": most, "includeThoughts": True}]


def chat(dialect: str, effort: Effort) -> Sequence[Part]:
    """Return the forms for a server with the chat completions API, by its dialect."""
    thinks = effort != "none"
    match dialect:
        case "openrouter":
            level = _LEVELS[effort][:2][-1] if effort == "max" else effort
            forms = [{"reasoning": {"effort": level}}]
            return forms + ([{"reasoning": {"effort": "high"}}] if effort == "max" else [])
        case "deepseek":
            if not thinks:
                return [{"thinking": {"type": "disabled"}}]
            # DeepSeek has low, high and max, and takes medium for high.
            return [{"thinking": {"type": "enabled"}, "reasoning_effort": effort}]
        case "qwen":
            if not thinks:
                return [{"enable_thinking": False}]
            budget = {"enable_thinking": True, "thinking_budget": _BUDGETS[effort]}
            return [budget, {"enable_thinking": True}]
        case "local":
            level = "high" if effort == "max" else effort
            # Templates of Qwen and GLM read `enable_thinking`. That of gpt-oss reads the level,
            # which vLLM and Ollama take beside the messages, and llama.cpp before b10434 only here.
            told: Part = {"enable_thinking": thinks} | (
                {"reasoning_effort": level} if thinks else {}
            )
            switch: Part = {"chat_template_kwargs": told}
            return [{**switch, "reasoning_effort": level}, switch, {"reasoning_effort": level}]
        case _:
            return [{"reasoning_effort": level} for level in _LEVELS[effort]]


_HOSTS = {
    "deepseek": "deepseek",
    "dashscope": "qwen",
    "aliyuncs": "qwen",
    "openrouter": "openrouter",
}
_LOCAL_NAMES = frozenset({"ollama", "lmstudio", "llamacpp", "vllm"})
_LOCAL_HOST = re.compile(
    r"https?://(?:localhost|127\.|\[::1\]|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|[^./:]+[:/])"
)


def dialect_of(provider: str, base_url: str) -> str:
    """Return how the server at this address wants to be asked for thinking; "" for OpenAI's way."""
    host = base_url.partition("://")[2].partition("/")[0].lower()
    for word, dialect in _HOSTS.items():
        if word in host:
            return dialect
    if provider in ("deepseek", "openrouter", "qwen"):
        return provider
    if provider in _LOCAL_NAMES:
        return "local"
    # `openai/…` behind a gateway is OpenAI's API, wherever the gateway runs.
    return "local" if provider != "openai" and _LOCAL_HOST.match(f"{base_url}/") else ""


def is_thinking(effort: Part) -> bool:
    """Whether these fields of Anthropic's API switch thinking on."""
    return effort.get("thinking", {}).get("type") in ("enabled", "adaptive")


def output_limit(effort: Part, limit: int, most: int) -> int:
    """Return Anthropic's `max_tokens`: it counts thoughts and must be larger than their budget."""
    budget = effort.get("thinking", {}).get("budget_tokens", 0)
    return limit if limit >= budget + 1024 else min(budget + limit, max(most, limit))
