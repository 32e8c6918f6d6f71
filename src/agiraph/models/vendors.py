"""Vendors: one table with a row for each provider of models.

A vendor with an OpenAI-compatible API is one more row. A new wire is a module with a model class,
and a row that names the class.
"""

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from agiraph.core.domain.value import dataclass
from agiraph.models.base import Model
from agiraph.models.http.client import HttpClient
from agiraph.models.options import ModelOptions
from agiraph.models.wires.anthropic import AnthropicModel
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.models.wires.gemini import GeminiModel
from agiraph.models.wires.responses import ResponsesModel


class Wire(Protocol):
    """Makes a model that speaks one API. The model classes of the wire modules are wires."""

    def __call__(
        self,
        *,
        name: str,
        model: str,
        base_url: str,
        key: str,
        http: HttpClient,
        options: ModelOptions,
    ) -> Model: ...


CHAT = "chat"
WIRES: Mapping[str, Wire] = {
    CHAT: OpenAIModel,
    "responses": ResponsesModel,
    "anthropic": AnthropicModel,
    "gemini": GeminiModel,
}
"""The wires that a [servers.NAME] table may choose, by name; the first is the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    name: str
    """The part of a model's name before the slash."""
    aliases: tuple[str, ...] = ()
    """Other names under which people know this vendor."""
    wire: Wire
    gateway_wire: Wire | None = None
    """The wire at another address than `base_url`; None: the same."""
    base_url: str
    key_variable: str = ""
    """The environment variable of the API key; empty for a local server, which needs none."""
    url_variable: str = ""
    """The environment variable of a base URL that replaces `base_url`."""
    default_model: str = ""
    """The model used when no model is set and this is the first vendor with a key."""
    price_list_id: str = ""
    """The vendor's id in the genai-prices table, where it is not the name."""
    telemetry_name: str = ""
    """OpenTelemetry's `gen_ai.provider.name`, where it is not the name."""

    @property
    def is_local(self) -> bool:
        """Whether this is a server that people run themselves. [servers.NAME] may replace it."""
        return not self.key_variable


VENDORS: tuple[Vendor, ...] = (
    Vendor(
        name="anthropic",
        wire=AnthropicModel,
        base_url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        url_variable="ANTHROPIC_BASE_URL",
        default_model="claude-sonnet-5-5",
    ),
    Vendor(
        name="openai",
        wire=ResponsesModel,
        # Gateways that stand in for OpenAI seldom speak its newer API.
        gateway_wire=OpenAIModel,
        base_url="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        url_variable="OPENAI_BASE_URL",
        default_model="gpt-6-sol",
    ),
    Vendor(
        name="gemini",
        aliases=("google",),
        wire=GeminiModel,
        base_url="https://generativelanguage.googleapis.com",
        key_variable="GEMINI_API_KEY",
        # Google's own SDK and command line read this variable, not GEMINI_BASE_URL.
        url_variable="GOOGLE_GEMINI_BASE_URL",
        default_model="gemini-3.8-flash",
        price_list_id="google",
        telemetry_name="gcp.gemini",
    ),
    Vendor(
        name="openrouter",
        # OpenRouter passes requests on to many vendors: the reasoning of one model must not be
        # sent to another one.
        wire=partial(OpenAIModel, is_router=True),
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        url_variable="OPENROUTER_BASE_URL",
        default_model="anthropic/claude-sonnet-5.5",
    ),
    Vendor(
        name="deepseek",
        wire=OpenAIModel,
        base_url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
        url_variable="DEEPSEEK_BASE_URL",
        default_model="deepseek-v4-pro",
    ),
    Vendor(
        name="mistral",
        wire=OpenAIModel,
        base_url="https://api.mistral.ai/v1",
        key_variable="MISTRAL_API_KEY",
        url_variable="MISTRAL_BASE_URL",
        default_model="mistral-large-4",
        telemetry_name="mistral_ai",
    ),
    Vendor(
        name="xai",
        aliases=("x-ai",),
        wire=OpenAIModel,
        base_url="https://api.x.ai/v1",
        key_variable="XAI_API_KEY",
        url_variable="XAI_BASE_URL",
        default_model="grok-4.7",
        price_list_id="x-ai",
        telemetry_name="x_ai",
    ),
    Vendor(
        name="groq",
        wire=OpenAIModel,
        base_url="https://api.groq.com/openai/v1",
        key_variable="GROQ_API_KEY",
        url_variable="GROQ_BASE_URL",
        default_model="openai/gpt-oss-120b",
    ),
    # 127.0.0.1 and not "localhost", which may resolve to ::1, where these servers do not listen by
    # default.
    Vendor(name="ollama", wire=OpenAIModel, base_url="http://127.0.0.1:11434/v1"),
    Vendor(name="lmstudio", wire=OpenAIModel, base_url="http://127.0.0.1:1234/v1"),
    Vendor(name="llamacpp", wire=OpenAIModel, base_url="http://127.0.0.1:8080/v1"),
    Vendor(name="vllm", wire=OpenAIModel, base_url="http://127.0.0.1:8000/v1"),
)
"""All vendors. The order decides whose default model is used when several keys are set."""

VENDOR_BY_NAME: Mapping[str, Vendor] = {
    name: vendor for vendor in VENDORS for name in (vendor.name, *vendor.aliases)
}
REMOTE_VENDOR_NAMES = frozenset(
    name for name, vendor in VENDOR_BY_NAME.items() if not vendor.is_local
)
"""The names that a [servers.NAME] table may not have."""
KEY_VARIABLES = tuple(vendor.key_variable for vendor in VENDORS if vendor.key_variable)


def price_list_id(provider: str) -> str:
    """Return the provider's id in the genai-prices table; the name itself for unknown providers."""
    vendor = VENDOR_BY_NAME.get(provider)
    return (vendor.price_list_id if vendor else "") or provider


def telemetry_name(provider: str) -> str:
    """Return the provider's name in OpenTelemetry's conventions."""
    vendor = VENDOR_BY_NAME.get(provider)
    return (vendor.telemetry_name if vendor else "") or provider
