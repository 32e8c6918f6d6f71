"""Options: what agiraph.toml adds to the requests to a model or a server."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, ValidationInfo

from agiraph.core.domain.sections import entry, must
from agiraph.core.domain.work import EFFORTS, Effort
from agiraph.redaction import keep

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_HEADERS = frozenset(
    ("authorization", "x-api-key", "x-goog-api-key", "content-type", "content-length",
     "content-encoding", "transfer-encoding", "connection", "host", "accept-encoding")
)  # fmt: skip
"""Headers that the wires set themselves: the key's, and those that describe the message."""
_OWN_FIELDS = frozenset(
    ("model", "messages", "input", "contents", "system", "instructions", "systemInstruction",
     "tools", "tool_choice", "toolConfig", "stream", "stream_options", "store", "include",
     "max_tokens", "max_completion_tokens", "max_output_tokens", "cache_control",
     "prompt_cache_key")
)  # fmt: skip
"""Fields of a request that are the runtime's: with another value, threads would break."""
_FROM_ENVIRONMENT = "env:"

TrainedForm = Literal["hermes", "qwen", "llama", "mistral"]
"""A form of calls in text that models were trained on."""
CallForm = Literal["native", "text", TrainedForm]
"""How calls are read: from the API's own fields, from text with a key, or in a trained form."""
CALL_FORMS: tuple[CallForm, ...] = ("native", "text", "hermes", "qwen", "llama", "mistral")

PromptSize = Literal["auto", "full", "lean"]
"""Which system prompt and tools a model is shown: the short ones for small models are lean."""
PROMPT_SIZES: tuple[PromptSize, ...] = ("auto", "full", "lean")


def _header(where: str, text: str, environ: Mapping[str, str]) -> str:
    if not text.isprintable() or not text.isascii():
        raise ValueError(f"{where} must be a text of ASCII characters in one line")
    if not text.startswith(_FROM_ENVIRONMENT):
        return text
    variable = text.removeprefix(_FROM_ENVIRONMENT).strip()
    secret = environ.get(variable, "").strip()
    if not secret or not secret.isprintable() or not secret.isascii():
        raise ValueError(f"{where}: set {variable} in the environment to a text in one line")
    keep({variable: secret})
    return secret


def _headers(given: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
    """Return headers with their names in small letters. A value `env:VAR` is read from the
    environment."""
    found: dict[str, str] = {}
    for name, text in given.items():
        if not _HEADER.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a header")
        if name.lower() in _OWN_HEADERS:
            raise ValueError(f"{name!r} is set by agiraph. A key goes into the environment")
        found[name.lower()] = _header(name, text, info.context or {})
    return found


def _body(given: Mapping[str, Any]) -> Mapping[str, Any]:
    if taken := sorted(_OWN_FIELDS & given.keys()):
        raise ValueError(f"it may not set {', '.join(taken)}: agiraph writes these fields itself")
    return given


Headers = Annotated[Mapping[str, str], AfterValidator(_headers)]
Calls = Annotated[CallForm, must(f"is not one of {', '.join(CALL_FORMS)}")]
EffortSetting = Annotated[Effort, must(f"is not one of {', '.join(EFFORTS)}")]


@entry
class ModelOptions:
    """What is added to each request to a model. A request's own effort and limits come first."""

    effort: EffortSetting | None = None
    temperature: (
        Annotated[float, Field(ge=0, le=2), must("must be a number from 0 to 2")] | None
    ) = None
    max_output_tokens: (
        Annotated[int, Field(ge=1), must("must be a whole number above 0")] | None
    ) = None
    headers: Headers = field(default_factory=dict[str, str], repr=False)
    body: Annotated[Mapping[str, Any], AfterValidator(_body)] = field(
        default_factory=dict[str, Any]
    )
    """Fields that are merged into the request; objects are merged field by field."""
    calls: Calls | None = None
    """How the model's calls are read; None: as its server has it, else native."""
    prompt: Annotated[PromptSize, must(f"is not one of {', '.join(PROMPT_SIZES)}")] = "auto"
    """The size of the prompt; auto: by the model's window."""


NONE = ModelOptions()
"""Nothing is added."""


@entry
class Role:
    """What [roles.NAME] says of the models of all agents of a role."""

    effort: EffortSetting | None = None


def with_headers(options: ModelOptions, headers: Mapping[str, str]) -> ModelOptions:
    """Return the options with the headers of a server; a model's own headers come first."""
    return replace(options, headers={**headers, **options.headers}) if headers else options


def merged(settings: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a request with the extra fields; in both, an object's fields are
    merged, and of other values the extra one counts."""
    result = dict(settings)
    for key, value in extra.items():
        known = result.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            result[key] = merged(cast(dict[str, Any], known), cast(dict[str, Any], value))
        else:
            result[key] = value
    return result
