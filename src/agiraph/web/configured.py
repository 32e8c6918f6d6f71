"""Configured: the web as the settings have it, the search engine's key from the environment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agiraph.domain.errors import Misconfigured
from agiraph.redaction import keep
from agiraph.web.access import Web
from agiraph.web.addresses import Gate
from agiraph.web.fetch import Fetcher
from agiraph.web.search import RemoteEngine

EXAMPLE = (
    '[search] with provider = "brave", "serper", "tavily" or "searxng" and, if needed, base_url '
    'and key_env = "VAR"'
)
VARIABLES = {
    "brave": "BRAVE_API_KEY",
    "serper": "SERPER_API_KEY",
    "tavily": "TAVILY_API_KEY",
    "searxng": "SEARXNG_URL",
}
"""What sets up an engine without a line in the file; the first that is set counts."""
SHOWN = "search"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    provider: Literal["brave", "serper", "tavily", "searxng"]
    base_url: Annotated[str, Field(pattern=r"^https?://")] | None = None
    key_env: Annotated[str, Field(min_length=1)] | None = None


def web(path: Path, written: Any, environ: Mapping[str, str], *, own_port: int) -> Web:
    """What agents have of the web; our own API is not part of it."""
    gate = Gate(refused_ports=frozenset({own_port}))
    return Web(fetcher=Fetcher(gate=gate), engine=_engine(path, written, environ))


def shown(web: Web) -> str:
    """The engine that is set up, for people to look at; never its key."""
    if not isinstance(web.engine, RemoteEngine):
        return ""
    at = f" at {web.engine.base_url}" if web.engine.base_url else ""
    return f"{web.engine.name}{at} (key: {'set' if web.engine.key else 'none'})"


def _engine(path: Path, written: Any, environ: Mapping[str, str]) -> RemoteEngine | None:
    if written is None:
        named = [name for name, variable in VARIABLES.items() if environ.get(variable)]
        entry = _Entry.model_validate({"provider": named[0]}) if named else None
    else:
        entry = _read(path, written)
    if entry is None:
        return None
    if entry.provider == "searxng":
        base_url, key = entry.base_url or environ.get("SEARXNG_URL", ""), ""
        if entry.key_env:
            key = _key(path, entry.key_env, environ)
        if not base_url.startswith(("http://", "https://")):
            raise Misconfigured(
                f"SEARXNG_URL {base_url!r} must begin with https:// or http://; or give base_url "
                f"in {path}: {EXAMPLE}."
            )
    else:
        base_url = entry.base_url or ""
        key = _key(path, entry.key_env or VARIABLES[entry.provider], environ)
    return RemoteEngine(name=entry.provider, key=key, base_url=base_url)


def _key(path: Path, variable: str, environ: Mapping[str, str]) -> str:
    key = environ.get(variable, "")
    if not key:
        raise Misconfigured(
            f"{path}: [search] takes its key from {variable}, which is not set. Set it, or name "
            "another variable in key_env."
        )
    keep({variable: key})
    return key


def _read(path: Path, written: Any) -> _Entry:
    try:
        return _Entry.model_validate(written)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in ("search", *first["loc"]))
        raise Misconfigured(f"{path}: {where}: {first['msg']}. Write {EXAMPLE}.") from error
