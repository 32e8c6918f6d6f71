"""Server facts: asks a model server for its kind, its models and their context windows."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, cast
from urllib.parse import urlsplit

from agiraph.core.domain.value import dataclass
from agiraph.models.facts.model_facts import Known
from agiraph.models.http.lookup import LookupFailed, look_up
from agiraph.models.http.proxy import Proxies

OLLAMA, LMSTUDIO, LLAMACPP, VLLM = "ollama", "lmstudio", "llamacpp", "vllm"
UNLOADED_WINDOW_TOKENS = 4_096
"""What Ollama and LM Studio give a model that is not loaded yet and has no size of its own."""
_WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Names under which servers tell a model's window in `/models`."""
_PROBE = "agiraph_probe"
_NUM_CTX = re.compile(r"^[ \t]*+num_ctx[ \t]++(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of a provider's server, at which it is asked about itself."""

    base_url: str
    key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    proxies: Proxies = Proxies()

    @property
    def root(self) -> str:
        """The server's address without the path of OpenAI's API."""
        return self.base_url.rstrip("/").removesuffix("/v1")

    @property
    def host(self) -> str:
        """The server's host and port, for messages."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    async def get(self, url: str, *, body: Mapping[str, Any] | None = None) -> Any:
        key = {"authorization": f"Bearer {self.key}"} if self.key else {}
        return await look_up(url, headers={**self.headers, **key}, body=body, proxies=self.proxies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The answer of a server to the questions about itself."""

    kind: str = ""
    """One of the local servers; empty if it is none that is known."""
    models: Mapping[str, Known] = field(default_factory=dict[str, Known])

    @property
    def lists_all(self) -> bool:
        """Whether a model that it does not list cannot be asked. llama.cpp's server answers to any
        name, and a gateway may know more names than it lists."""
        return self.kind in (OLLAMA, LMSTUDIO, VLLM) and bool(self.models)

    def listed(self, model: str) -> str:
        """Return the name under which the server lists the model; empty if it does not. Ollama's
        names end in `:latest` where people write none."""
        latest = f"{model}:latest"
        return model if model in self.models else latest if latest in self.models else ""


async def ask(endpoint: Endpoint) -> Said:
    """Return the server's models with what it tells of each; raise `LookupFailed` if it is down."""
    listed = await endpoint.get(f"{endpoint.base_url.rstrip('/')}/models")
    models = {row["id"]: Known(window=_window_in(row)) for row in _rows(listed, "data")}
    for row in _rows(listed, "models", key="name"):  # Gemini's form
        if isinstance(row.get("inputTokenLimit"), int):
            models[row["name"].removeprefix("models/")] = Known(window=row["inputTokenLimit"])
    root = endpoint.root
    props, running, studio = await asyncio.gather(
        _or_nothing(endpoint, f"{root}/props"),
        _or_nothing(endpoint, f"{root}/api/ps"),
        _or_nothing(endpoint, f"{root}/api/v0/models"),
    )
    if isinstance(props, dict) and "default_generation_settings" in props:
        return Said(kind=LLAMACPP, models=_of_llamacpp(models, cast(dict[str, Any], props)))
    if studio is not None and _rows(studio, "data"):
        return Said(kind=LMSTUDIO, models=_of_lmstudio(models, studio))
    if running is not None:
        return Said(kind=OLLAMA, models=_of_ollama(models, running))
    owners = {str(row.get("owned_by", "")) for row in _rows(listed, "data")}
    return Said(kind=VLLM if VLLM in owners else "", models=models)


async def ask_for_model(endpoint: Endpoint, said: Said, model: str) -> Said:
    """Return what the server said, with what it tells only when it is asked for one model."""
    name = said.listed(model)
    if said.kind == OLLAMA and name:
        known = await _shown_by_ollama(endpoint, said.models[name], name)
    elif said.kind == LLAMACPP and said.models:
        name = name or next(iter(said.models))  # one model, which answers to any name
        known = replace(said.models[name], tools=await _renders_tools(endpoint))
    else:
        return said
    return replace(said, models={**said.models, name: known})


async def _shown_by_ollama(endpoint: Endpoint, loaded: Known, model: str) -> Known:
    shown = await _or_nothing(endpoint, f"{endpoint.root}/api/show", body={"model": model})
    told = _object(shown)
    abilities: Any = told.get("capabilities")
    able = {str(one) for one in cast(list[Any], abilities)} if abilities else None
    sized = _NUM_CTX.search(str(told.get("parameters", "")))
    return Known(
        window=loaded.window or (int(sized[1]) if sized else UNLOADED_WINDOW_TOKENS),
        tools=None if able is None else "tools" in able,
        images=None if able is None else "vision" in able,
        thinking=None if able is None else "thinking" in able,
    )


async def _renders_tools(endpoint: Endpoint) -> bool | None:
    """Return whether the chat template of llama.cpp's server shows tools to the model. One without
    them drops the tools of a request and says nothing."""
    tool: dict[str, Any] = {"name": _PROBE, "parameters": {"type": "object", "properties": {}}}
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Hello."}],
        "tools": [{"type": "function", "function": tool}],
    }
    rendered = _object(await _or_nothing(endpoint, f"{endpoint.root}/apply-template", body=body))
    prompt = rendered.get("prompt")
    return _PROBE in prompt if isinstance(prompt, str) else None


def _of_llamacpp(models: Mapping[str, Known], props: dict[str, Any]) -> Mapping[str, Known]:
    window = _number(_object(props["default_generation_settings"]).get("n_ctx"))
    seen = _object(props.get("modalities"))
    images = bool(seen["vision"]) if "vision" in seen else None
    # One model is loaded, and it answers to any name.
    return {name: Known(window=window, images=images) for name in models}


def _of_lmstudio(models: Mapping[str, Known], studio: Any) -> Mapping[str, Known]:
    told: dict[str, Known] = {}
    for row in _rows(studio, "data"):
        if row.get("type") == "embeddings":
            continue
        able: Any = row.get("capabilities")
        told[row["id"]] = Known(
            window=_number(row.get("loaded_context_length")) or UNLOADED_WINDOW_TOKENS,
            tools=None if able is None else "tool_use" in able,
            images=row.get("type") == "vlm",
        )
    return told or models


def _of_ollama(models: Mapping[str, Known], running: Any) -> Mapping[str, Known]:
    loaded = {
        str(row.get("model") or row.get("name")): _number(row.get("context_length"))
        for row in _rows(running, "models", key="")
    }
    return {name: replace(known, window=loaded.get(name)) for name, known in models.items()}


def _rows(body: Any, name: str, *, key: str = "id") -> list[dict[str, Any]]:
    """Return the objects of a list in an answer, those that have the key as text."""
    rows: Any = cast(dict[str, Any], body).get(name) if isinstance(body, dict) else None
    if not isinstance(rows, list):
        return []
    objects = [cast(dict[str, Any], r) for r in cast(list[Any], rows) if isinstance(r, dict)]
    return [row for row in objects if not key or isinstance(row.get(key), str)]


def _object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _window_in(row: dict[str, Any]) -> int | None:
    return next((n for name in _WINDOWS if (n := _number(row.get(name))) is not None), None)


def _number(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


async def _or_nothing(
    endpoint: Endpoint, url: str, *, body: Mapping[str, Any] | None = None
) -> Any:
    try:
        return await endpoint.get(url, body=body)
    except LookupFailed:
        return None
