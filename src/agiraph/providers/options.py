"""Options: what agiraph.toml adds to the requests to a model or a server."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from agiraph.domain.effort import EFFORTS, Effort
from agiraph.domain.errors import Misconfigured
from agiraph.redaction import keep

T = TypeVar("T")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What is added to each request to a model. A request's own effort and limits come first."""

    effort: Effort | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that are merged into the request; objects are merged field by field."""
    calls: CallForm | None = None
    """How the model's calls are read; None: as its server has it, else native."""
    prompt: PromptSize = "auto"
    """The size of the prompt; auto: by the model's window."""


NONE = ModelOptions()
"""Nothing is added."""
OPTION_KEYS: tuple[str, ...] = tuple(option.name for option in fields(ModelOptions))


def options_of(path: Path, written: Any, environ: Mapping[str, str]) -> dict[str, ModelOptions]:
    """Return the options in the tables [models."provider/model"], by the model's name.

    Keys that are not options are left to those who read them; see `without_options`.
    """
    found: dict[str, ModelOptions] = {}
    for name, table in _tables(written):
        given = {key: table[key] for key in OPTION_KEYS if key in table}
        if given:
            found[name] = _options(f'{path}: [models."{name}"]', given, environ)
    return found


def without_options(written: Any) -> Any:
    """Return the tables of the models without the keys that `options_of` reads."""
    if not isinstance(written, dict):
        return written
    tables = cast(dict[str, Any], written)
    return {
        name: {k: v for k, v in cast(dict[str, Any], table).items() if k not in OPTION_KEYS}
        if isinstance(table, dict)
        else table
        for name, table in tables.items()
    }


def _tables(written: Any) -> list[tuple[str, dict[str, Any]]]:
    tables = cast(dict[str, Any], written) if isinstance(written, dict) else {}
    return [(name, table) for name, table in tables.items() if isinstance(table, dict)]


def _options(where: str, given: dict[str, Any], environ: Mapping[str, str]) -> ModelOptions:
    return ModelOptions(
        effort=_effort(where, given.get("effort")),
        temperature=_temperature(where, given.get("temperature")),
        max_output_tokens=_limit(where, given.get("max_output_tokens")),
        headers=headers_of(where, given.get("headers", {}), environ),
        body=_body(where, given.get("body", {})),
        calls=calls_of(where, given.get("calls")),
        prompt=_one_of(f"{where} prompt", given.get("prompt", "auto"), PROMPT_SIZES),
    )


def efforts_of(path: Path, written: Any) -> dict[str, Effort]:
    """Return the effort in each table [roles.NAME], by the role."""
    if not isinstance(written, dict):
        raise Misconfigured(f'{path}: roles are tables: [roles.worker] with effort = "low".')
    found: dict[str, Effort] = {}
    for role, table in cast(dict[str, Any], written).items():
        where = f"{path}: [roles.{role}]"
        known = cast(dict[str, Any], table) if isinstance(table, dict) else {"": table}
        if known.keys() - {"effort"}:
            raise Misconfigured(f"{where} has unknown settings; it knows: effort.")
        if (effort := _effort(where, known.get("effort"))) is not None:
            found[role] = effort
    return found


def _effort(where: str, value: Any) -> Effort | None:
    return None if value is None else _one_of(f"{where} effort", value, EFFORTS)


def _temperature(where: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 2:
        raise Misconfigured(f"{where} temperature {value!r} must be a number from 0 to 2.")
    return float(value)


def _limit(where: str, value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise Misconfigured(f"{where} max_output_tokens {value!r} must be a whole number above 0.")
    return value


def calls_of(where: str, value: Any) -> CallForm | None:
    """Return how calls of a model or server are read; None if nothing is said."""
    return None if value is None else _one_of(f"{where} calls", value, CALL_FORMS)


def _one_of(where: str, value: Any, choices: tuple[T, ...]) -> T:
    if value not in choices:
        raise Misconfigured(f"{where} {value!r} is not one of {', '.join(map(str, choices))}.")
    return value


def headers_of(where: str, value: Any, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the extra headers of a model or server. A value `env:VAR` is read from the
    environment."""
    if not isinstance(value, dict):
        raise Misconfigured(f'{where} headers must be a table: headers = {{ "x-name" = "value" }}.')
    found: dict[str, str] = {}
    for name, text in cast(dict[str, Any], value).items():
        if not _HEADER.fullmatch(name):
            raise Misconfigured(f"{where} headers: {name!r} is not the name of a header.")
        if name.lower() in _OWN_HEADERS:
            raise Misconfigured(
                f"{where} headers: {name!r} is set by agiraph. A key goes into the environment."
            )
        found[name.lower()] = _header_value(f"{where} headers.{name}", text, environ)
    return found


def _header_value(where: str, value: Any, environ: Mapping[str, str]) -> str:
    if not isinstance(value, str) or not value.isprintable() or not value.isascii():
        raise Misconfigured(f"{where} must be a text of ASCII characters in one line.")
    if not value.startswith(_FROM_ENVIRONMENT):
        return value
    variable = value.removeprefix(_FROM_ENVIRONMENT).strip()
    secret = environ.get(variable, "").strip()
    if not secret or not secret.isprintable() or not secret.isascii():
        raise Misconfigured(f"{where}: set {variable} in the environment to a text in one line.")
    keep({variable: secret})
    return secret


def _body(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misconfigured(f"{where} body must be a table with fields of the request.")
    body = cast(dict[str, Any], value)
    if taken := sorted(_OWN_FIELDS & body.keys()):
        raise Misconfigured(
            f"{where} body may not set {', '.join(taken)}: agiraph writes these fields itself."
        )
    return body


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
