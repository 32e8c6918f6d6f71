"""Configured limits: what one command may use, from `[command_limits]` of agiraph.toml."""

from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, Strict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agiraph.domain.errors import Misconfigured
from agiraph.home.sandbox import Limits

TABLE = "command_limits"
_Count = Annotated[int, Strict(), Field(ge=1)]


class _LimitsEntry(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="forbid")  # pyright: ignore[reportGeneralTypeIssues]

    processes: _Count
    memory_mib: _Count
    file_mib: _Count
    free_disk_mib: _Count
    team_processes: _Count
    team_memory_mib: _Count
    all_processes: _Count
    all_memory_mib: _Count


@cache
def _adapter() -> TypeAdapter[_LimitsEntry]:
    """Return what checks the table; built once, because that takes milliseconds."""
    return TypeAdapter(_LimitsEntry)


def command_limits(path: Path, written: Any) -> Limits:
    """Return the limits of a command, with the file's values in place of the defaults."""
    try:
        return Limits(**_adapter().validate_python(written))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in (TABLE, *first["loc"]))
        known = ", ".join(asdict(Limits()))
        raise Misconfigured(
            f"{path}: {where}: {first['msg']}. Write whole numbers in [{TABLE}]: {known}."
        ) from error
