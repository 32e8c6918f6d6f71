"""Rows: maps frozen dataclasses to table rows and back."""

import json
import types
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import (
    Any,
    Generic,
    Literal,
    NewType,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import orjson
from pydantic import TypeAdapter

from agiraph.core.domain.errors import NotFound, StoreDamaged
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.json_text import without_surrogates
from agiraph.core.domain.value import maker_of
from agiraph.core.domain.work_kinds import WorkKind, kind_named
from agiraph.core.store.tx import Tx
from agiraph.redaction import redact, redact_json

T = TypeVar("T")
Codec = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    # Integers only: `timestamp()` is a float and may round the microseconds.
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def to_text(text: str) -> str:
    """Return text that both databases store: NUL and lone surrogates replaced, secrets redacted."""
    return redact(text if text.isascii() and "\0" not in text else _storable(text))


def _storable(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "\N{SYMBOL FOR NULL}")
    return without_surrogates(text)


_LETTERS = "abcdefgh"
"""Distinguishes the parameters of searched words, whose names may hold only letters and
underscores. Words beyond the eighth are ignored."""
_PLAIN = str.maketrans({mark: f"!{mark}" for mark in "!%_"})
"""`%` and `_` are wildcards of LIKE."""


def holds_all(expression: str, words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the condition that a text holds all words, which are in lower case, and its
    parameters."""
    plain = [word.translate(_PLAIN) for word in words]
    named = {f"word_{letter}": f"%{word}%" for letter, word in zip(_LETTERS, plain, strict=False)}
    held = [f"lower({expression}) like :{name} escape '!'" for name in named]
    return " and ".join(held) or "1 = 1", named


def is_among(column: str, values: Sequence[str], name: str) -> tuple[str, dict[str, str]]:
    """Return the condition that a column has one of these values, and its parameters, whose names
    begin with `name`."""
    digits = str.maketrans("0123456789", "abcdefghij")
    named = {f"{name}_{str(n).translate(digits)}": value for n, value in enumerate(values)}
    return f"{column} in ({', '.join(f':{each}' for each in named)})", named


def to_json(value: Any) -> str:
    try:
        text = orjson.dumps(value).decode()
        return text if redact(text) is text else redact_json(text)
    except orjson.JSONEncodeError:
        # orjson refuses lone surrogates and integers of more than 64 bits.
        return redact_json(_storable(json.dumps(value, default=asdict, ensure_ascii=False)))


def from_json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise StoreDamaged(f"A row cannot be read: {error}") from error


def to_label(stored: str | None) -> Label:
    """Read the label of a row; a clean item has none."""
    return CLEAN if stored is None else Label.from_list(from_json(stored))


def from_label(label: Label) -> str | None:
    return to_json(label.to_list()) if label else None


def _same(value: Any) -> Any:
    return value


def _required(hint: Any) -> tuple[Any, bool]:
    """Return the type of a field without None, and whether it may be None."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(a for a in get_args(hint) if a is not type(None)), True
    return hint, False


def _codec(hint: Any) -> tuple[Codec, Codec]:
    """Return the encoder and decoder of a field, from its type; chosen once per table."""
    if isinstance(hint, NewType):
        hint = hint.__supertype__
    if hint is datetime:
        return to_micros, from_micros
    if hint is bool:
        return int, bool
    if hint is str:
        return to_text, _same
    if hint is Label:
        return from_label, to_label
    if hint is WorkKind:
        return lambda v: v.name, kind_named
    if hint in (int, float) or get_origin(hint) is Literal:
        return _same, _same
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return str, hint
    return to_json, TypeAdapter[Any](cast(Any, hint)).validator.validate_json


class Table(Generic[T]):
    """The table of one dataclass. Its columns are the dataclass's fields, in their order."""

    def __init__(self, name: str, value_type: type[T], *, key: str = "id") -> None:
        self.name = name
        self.value_type = value_type
        self.key = key
        self.fields: list[str] = [f.name for f in fields(value_type)]  # pyright: ignore[reportArgumentType]
        self._values_of = attrgetter(*self.fields)
        self.columns: str = ", ".join(self.fields)
        marks = ", ".join(f":{f}" for f in self.fields)
        self._insert = f"insert into {name} ({self.columns}) values ({marks})"
        self._by_key = f"select {self.columns} from {name} where {key} = :key"

    # Made at the first row: few commands read or write rows of many tables.
    @cached_property
    def _codecs(self) -> list[tuple[str, Codec, Codec, bool]]:
        """Each column with its encoder and decoder, and whether it may lack a value."""
        hints = get_type_hints(self.value_type)
        required = ((column, *_required(hints[column])) for column in self.fields)
        return [(column, *_codec(hint), may_lack) for column, hint, may_lack in required]

    # Most columns are stored as they are; only the others cost time for each row.
    @cached_property
    def _encode(self) -> dict[str, tuple[Codec, bool]]:
        return {
            column: (encode, may_lack)
            for column, encode, _, may_lack in self._codecs
            if encode is not _same
        }

    @cached_property
    def _decode(self) -> list[tuple[int, Codec, bool]]:
        return [
            (place, decode, may_lack)
            for place, (_, _, decode, may_lack) in enumerate(self._codecs)
            if decode is not _same
        ]

    @cached_property
    def _make(self) -> Callable[[Sequence[Any]], T]:
        return maker_of(self.value_type)

    def insert(self, tx: Tx, thing: T) -> T:
        tx.run(self._insert, **self._row_of(thing))
        return thing

    def _row_of(self, thing: T) -> dict[str, Any]:
        return self._stored(dict(zip(self.fields, self._values_of(thing), strict=True)))

    def _stored(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields' values as the row holds them."""
        codecs = self._encode
        for field, value in values.items():
            if field in codecs:
                encode, may_lack = codecs[field]
                if value is not None or not may_lack:
                    values[field] = encode(value)
        return values

    def insert_if_new(self, tx: Tx, thing: T) -> None:
        """Insert a row; do nothing if there is a row with its key, or with an equal value in a
        unique column."""
        tx.run(f"{self._insert} on conflict do nothing", **self._row_of(thing))

    def load(self, row: Sequence[Any]) -> T:
        values = [*row]
        try:
            for place, decode, may_lack in self._decode:
                if values[place] is not None or not may_lack:
                    values[place] = decode(values[place])
            return self._make(values)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise StoreDamaged(f"A row of {self.name} cannot be read: {error}") from error

    def find(self, tx: Tx, key: str, *, lock: bool = False) -> T | None:
        cache = None if tx.cache is None else tx.cache.setdefault(self.name, {})
        # Also with `lock`: only SQLite has a cache, and there this transaction is the only writer.
        if cache is not None and key in cache:
            return cache[key]
        row = tx.one(self._by_key + (" {for_update}" if lock else ""), key=key)
        if row is None:
            return None
        found = self.load(row)
        if cache is not None:
            cache[key] = found
        return found

    def get(self, tx: Tx, key: str, *, lock: bool = False) -> T:
        """Return the row, or raise `NotFound`. With `lock`, hold its row lock until the commit."""
        found = self.find(tx, key, lock=lock)
        if found is None:
            raise NotFound(self.value_type.__name__.removeprefix("Stored").lower(), key)
        return found

    def select(self, tx: Tx, where: str, **values: Any) -> list[T]:
        sql = f"select {self.columns} from {self.name} where {where}"
        return [self.load(row) for row in tx.all(sql, **values)]

    def update(self, tx: Tx, key: str, **changes: Any) -> int:
        """Set these fields of one row; return 1, or 0 if there is no such row."""
        sets = ", ".join([f"{f} = :{f}" for f in changes])
        sql = f"update {self.name} set {sets} where {self.key} = :_key"
        return tx.run(sql, _key=key, **self._stored(changes))
