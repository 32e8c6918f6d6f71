"""MCP tables: writes servers into agiraph.toml and takes them out, and leaves the rest as it is."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import orjson

from agiraph.domain.errors import Conflict, Misconfigured, NotFound
from agiraph.home.layout import Home
from agiraph.location import FILE
from agiraph.mcp_client.settings import TABLE

_HEADER = re.compile(r"^\s*\[")


def add(home: Home, name: str, settings: Mapping[str, Any]) -> None:
    """Append a server to agiraph.toml, which is created if it is missing."""
    text = _text(home)
    if name in tomllib.loads(text).get(TABLE, {}):
        raise Conflict(
            f"There is an MCP server {name!r} already. Remove it first: agiraph mcp remove {name}"
        )
    lines = [f"{key} = {_value(value)}" for key, value in settings.items() if value]
    before = text if not text or text.endswith("\n") else f"{text}\n"
    made = "\n".join([f"{before}{'' if not before else chr(10)}[{TABLE}.{name}]", *lines, ""])
    tomllib.loads(made)
    home.folder.write(FILE, made.encode())


def remove(home: Home, name: str) -> None:
    """Take a server out of agiraph.toml."""
    text = _text(home)
    before = tomllib.loads(text)
    tables = cast(dict[str, Any], before.get(TABLE, {}))
    if name not in tables:
        raise NotFound("MCP server in agiraph.toml", name, known="`agiraph mcp list` shows all.")
    kept: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            is_inside = _names(line, name)
        if not is_inside:
            kept.append(line)
    made = "".join(kept)
    del tables[name]
    after = tomllib.loads(made)
    if {TABLE: {}, **after} != {TABLE: {}, **before}:
        raise Misconfigured(
            f"{home.config_path} cannot be changed without changing more than mcp.{name}. Take "
            "the table out by hand."
        )
    home.folder.write(FILE, made.encode())


def _names(header: str, name: str) -> bool:
    """Whether a line begins the table of this server, or one inside of it."""
    named = re.escape(name)
    quoted = rf"(?:{named}|\"{named}\"|'{named}')"
    return re.match(rf"\s*\[\s*{TABLE}\s*\.\s*{quoted}\s*[.\]]", header) is not None


def _text(home: Home) -> str:
    path: Path = home.config_path
    try:
        text = path.read_bytes().decode()
        tomllib.loads(text)
    except FileNotFoundError:
        return ""
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path} is not valid TOML: {error}.") from error
    return text


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = cast(Mapping[str, Any], value).items()
        return f"{{ {', '.join(f'{_value(key)} = {_value(one)}' for key, one in pairs)} }}"
    # Strings, numbers and lists are written in TOML as in JSON.
    return orjson.dumps(value).decode().replace("\x7f", "\\u007f")
