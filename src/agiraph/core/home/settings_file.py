"""Settings file: adds a table to agiraph.toml or takes one out; all other lines stay the same."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import orjson

from agiraph.core.domain.errors import Conflict, Misconfigured
from agiraph.core.home.layout import Home


def tables(home: Home, table: str) -> dict[str, Any]:
    """Return the tables `[table.NAME]` by name, as a person wrote them."""
    return cast(dict[str, Any], tomllib.loads(_text(home)).get(table, {}))


def add(home: Home, table: str, name: str, values: Mapping[str, Any]) -> None:
    """Append `[table.name]` to agiraph.toml, which is created if it is missing. What is empty is
    left out; raise `Conflict` if there is such a table."""
    text = _text(home)
    if name in tomllib.loads(text).get(table, {}):
        raise Conflict(f"{home.config_path} has a table [{table}.{name}] already.")
    lines = [f"{key} = {_value(value)}" for key, value in values.items() if value]
    before = text if not text or text.endswith("\n") else f"{text}\n"
    made = "\n".join([f"{before}{'' if not before else chr(10)}[{table}.{name}]", *lines, ""])
    tomllib.loads(made)
    home.folder.write(home.config_path.name, made.encode())


def take_out(home: Home, table: str, name: str) -> None:
    """Take `[table.name]`, which is there, out of agiraph.toml; raise `Misconfigured` if that would
    change more than the table."""
    text = _text(home)
    before = tomllib.loads(text)
    key = re.escape(name)
    # This table, or one inside of it, to the next table or the end.
    begin = rf"^[ \t]*\[\s*{table}\s*\.\s*(?:{key}|\"{key}\"|'{key}')\s*[.\]]"
    made = re.sub(rf"{begin}.*?(?=^[ \t]*\[|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    del before[table][name]
    after = tomllib.loads(made)
    if {table: {}, **after} != {table: {}, **before}:
        raise Misconfigured(
            f"{home.config_path} cannot be changed without changing more than {table}.{name}. Take "
            "the table out by hand."
        )
    home.folder.write(home.config_path.name, made.encode())


def reason(home: Home, error: Misconfigured) -> str:
    """Return why a table cannot be used, without the file and what to write into it: for a person
    who filled in a form."""
    said = str(error).removeprefix(f"{home.config_path}: ").partition(". Write ")[0]
    return f"{said.rstrip('.')}."


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
