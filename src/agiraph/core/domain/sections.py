"""Sections: declares the tables of agiraph.toml as dataclasses, reads them and shows their values.

A field of the dataclass is a setting, with its default; its type and `must` say what is accepted.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import field, fields
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, dataclass_transform

from pydantic import (
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    with_config,
)

from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.value import dataclass

T = TypeVar("T")
FILE = "agiraph.toml"
# User and password in an address: `show` masks the password in the list that people look at.
_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*@")
_ABSENT: Mapping[str, str] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field, Field))
def entry(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass that a table is read as: other keys are refused, and values
    are never converted, so that "5" is no number."""
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    return with_config(extra="forbid", strict=True)(made)


class _Wrong(ValueError):
    """A wrong value, quoted, and what it must be."""


def must(words: str) -> WrapValidator:
    """Return what says of a wrong value what it must be, in place of pydantic's words, and quotes
    the value: `Annotated[float, Field(le=2), must("must be a number up to 2")]`. Not for
    secrets."""

    def check(given: Any, accept: ValidatorFunctionWrapHandler) -> Any:
        try:
            return accept(given)
        except ValidationError:
            raise _Wrong(f"{given!r} {words}") from None

    return WrapValidator(check)


@dataclass(frozen=True, slots=True)
class Section(Generic[T]):
    """A table of agiraph.toml, or a table of tables by name."""

    name: str
    kind: type[T]
    """The `entry` that a table is read as."""
    example: str
    """What to write, for messages."""
    beside: tuple[type, ...] = ()
    """Entries of other sections that read other keys of the same tables."""

    def read(self, path: Path | str, written: Any, environ: Mapping[str, str] = _ABSENT) -> T:
        """Return the table; raise `Misconfigured` with the file, the wrong setting and an example.

        Validators find the environment in the context of their `ValidationInfo`.
        """
        # Without a table there is nothing to check: most commands start without the checker then.
        if written is None:
            return self.kind()
        return self._read(path, f"{self.name}.", written, environ)

    def read_each(
        self, path: Path, written: Any, environ: Mapping[str, str] = _ABSENT
    ) -> dict[str, T]:
        """Return the tables by name; raise `Misconfigured` like `read`."""
        if written is not None and not isinstance(written, dict):
            raise Misconfigured(f"{path}: {self.name} are tables: {self.example}.")
        return {
            name: self._read(path, f"[{self.name}.{name}] ", table, environ)
            for name, table in cast(dict[str, Any], written or {}).items()
        }

    def _read(self, path: Path | str, place: str, table: Any, environ: Mapping[str, str]) -> T:
        others = [one.name for kind in self.beside for one in fields(kind)]
        if others and isinstance(table, dict):
            named = cast(dict[str, Any], table)
            table = {key: value for key, value in named.items() if key not in others}
        adapter = _adapter(self.kind)
        try:
            # As JSON: a list of the file is a tuple or a set of the entry then, and a date a text.
            return adapter.validate_json(json.dumps(table, default=str), context=environ)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = (place + ".".join(str(part) for part in first["loc"])).rstrip(". ")
            known = ", ".join((*adapter.json_schema()["properties"], *others))
            said = _said(first, known)
            raise Misconfigured(f"{path}: {where}{said}. Write {self.example}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value in force and its origin."""

    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Written:
    """What a person wrote into agiraph.toml and the environment, and what comes of it."""

    path: Path
    environ: Mapping[str, str] = field(repr=False)
    written: Mapping[str, Any]
    shown: dict[str, Setting]
    """Every setting with its origin, for people to look at; secrets are masked."""

    def table(self, section: Section[T]) -> T:
        """Return a table of agiraph.toml."""
        return section.read(self.path, self.written.get(section.name), self.environ)

    def tables(self, section: Section[T]) -> dict[str, T]:
        """Return a table of tables of agiraph.toml."""
        return section.read_each(self.path, self.written.get(section.name), self.environ)

    def show(self, name: str, value: str, origin: str = FILE) -> None:
        """Record a value, without the password of an address in it."""
        self.shown[name] = Setting(value=_PASSWORD.sub(r"\1:…@", value), origin=origin)

    def show_each(self, table: str, values: Mapping[str, object]) -> None:
        """Record what a table of agiraph.toml holds, by the description of what has one."""
        for name, value in values.items():
            self.show(f"{table}.{name}", getattr(value, "description", str(value)))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what checks a table; built once, because that takes milliseconds."""
    return TypeAdapter(kind)


def _said(error: Any, known: str) -> str:
    match error["type"]:
        case "value_error" if isinstance(wrong := error["ctx"]["error"], _Wrong):
            return f" {wrong}"
        case "value_error":
            return f": {error['ctx']['error']}"
        case "unexpected_keyword_argument":
            return f": There is no such setting; there are {known}"
        case "dataclass_type":
            return ": It must be a table"
        case _:
            return f": {error['msg']}"
