"""Value: dataclasses whose methods are compiled at their first call, and immutable records.

The standard decorator compiles up to six methods of each class when it is imported, and most are
never called. With hundreds of classes, that was a third of the time that a command takes to start.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from functools import cache
from operator import attrgetter, itemgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform

T = TypeVar("T")

_quick: set[type] = set()
"""The classes whose fields may also be given by place: see `_init_of`."""


@dataclass_transform(field_specifiers=(field,))
def dataclass(
    *, frozen: bool = False, slots: bool = False, kw_only: bool = False, eq: bool = True
) -> Callable[[type[T]], type[T]]:
    """Make a class a dataclass as `dataclasses.dataclass` does, but compile its methods late."""
    return lambda cls: _make(cls, frozen=frozen, hashes=frozen, slots=slots, kw_only=kw_only, eq=eq)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make a class a slotted, keyword-only dataclass that the type checker treats as frozen.

    It is not frozen at run time: `frozen=True` sets each field through a function call, which cost
    5 % of a whole turn.
    """
    return _make(cls, frozen=False, hashes=True, slots=True, kw_only=True, eq=True, is_quick=True)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Like `value`, but the constructor also takes the fields as positional arguments."""
    return _make(cls, frozen=False, hashes=True, slots=True, kw_only=False, eq=True, is_quick=True)


def changed(thing: T, **changes: Any) -> T:
    """Return a copy of a value with these fields changed: `dataclasses.replace`, but several times
    as fast where there are many fields."""
    names, values_of, make = _parts_of(type(thing))
    values = dict(zip(names, values_of(thing), strict=True)) | changes
    # A name that is no field is refused.
    return make([*values.values()]) if len(values) == len(names) else type(thing)(**values)


def maker_of(cls: type[T]) -> Callable[[Sequence[Any]], T]:
    """Return a function that makes an object of the values of its fields, in their order."""
    known = _fields(cls)
    if cls in _quick and all(one.kw_only and one.init for one in known):
        # In the order of the parameters, which takes half as long as by name.
        places = sorted(range(len(known)), key=lambda place: _has_default(known[place]))
        in_order = itemgetter(*places) if len(places) > 1 else tuple
        return lambda values: cls(*in_order(values))
    names = [one.name for one in known]
    return lambda values: cls(**dict(zip(names, values, strict=True)))


@cache
def _parts_of(
    cls: type[Any],
) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]], Callable[[Sequence[Any]], Any]]:
    names = tuple(one.name for one in fields(cls))
    return names, attrgetter(*names), maker_of(cls)


def _make(
    cls: type[T],
    *,
    frozen: bool,
    hashes: bool,
    slots: bool,
    kw_only: bool,
    eq: bool,
    is_quick: bool = False,
) -> type[T]:
    own = dict(vars(cls))
    if not own.get("__doc__"):
        cls.__doc__ = "."  # without one, a signature would be made, which costs more than the rest
    make = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    made = cast("Any", make(cls))
    made.__doc__ = own.get("__doc__")

    def add(name: str, method: object) -> None:
        if name not in own:
            setattr(made, name, method)

    def init(self: object, *args: Any, **kwargs: Any) -> None:
        if vars(made)["__init__"] is init:
            made.__init__ = _init_of(made, frozen, is_quick)
        made.__init__(self, *args, **kwargs)

    def equals(self: object, other: object) -> bool:
        if vars(made)["__eq__"] is equals:
            made.__eq__ = _equality_of(made)
        return made.__eq__(self, other)

    def hash_of(self: object) -> int:
        if vars(made)["__hash__"] is hash_of:
            made.__hash__ = _hash_of(made)
        return made.__hash__(self)

    if is_quick:
        _quick.add(made)
    add("__init__", init)
    add("__repr__", _show)
    if eq:
        add("__eq__", equals)
        if own.get("__hash__") is None:
            made.__hash__ = hash_of if hashes else None
    if frozen:
        made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
        if slots:
            add("__getstate__", _state)
            add("__setstate__", _restore)
    return made


def _compile(made: type, line: str, body: str, known: dict[str, object]) -> Any:
    """Return the method that the source defines, named as a method of the class."""
    exec(f"def {line}:\n  {body}", known)
    method: Any = known[line.partition("(")[0]]
    method.__qualname__ = f"{made.__qualname__}.{method.__name__}"
    method.__module__ = made.__module__
    return method


def _init_of(made: type, frozen: bool, is_quick: bool) -> Any:
    by_place, by_name, body = ["self"], ["*"], list[str]()
    known: dict[str, object] = {"put_": object.__setattr__, "MISSING_": MISSING}
    for one in _fields(made):
        name, default = one.name, ""
        given = name if one.init else ""
        if one.default is not MISSING:
            known[f"default_{name}"] = one.default
            default = f"=default_{name}"
            given = given or f"default_{name}"
        elif one.default_factory is not MISSING:
            # To call `list[str]` sets an attribute of the list, which fails, and takes ten times
            # longer than to call `list`.
            factory = one.default_factory
            known[f"make_{name}"] = getattr(factory, "__origin__", factory)
            default = "=MISSING_"
            made_anew = f"make_{name}()"
            given = f"{made_anew} if {name} is MISSING_ else {name}" if given else made_anew
        if one.init:
            (by_name if one.kw_only else by_place).append(f"{name}{default}")
        if given:
            body.append(f"put_(self, {name!r}, {given})" if frozen else f"self.{name} = {given}")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    if len(by_name) == 1:
        by_name = []
    elif is_quick and len(by_place) == 1:
        # Parameters by name alone are looked up one by one in a dictionary of defaults, which takes
        # a third of the whole call. The type checkers refuse values by place.
        by_name = sorted(by_name[1:], key=lambda one: "=" in one)
    parameters = ", ".join(by_place + by_name)
    return _compile(made, f"__init__({parameters})", "\n  ".join(body) or "pass", known)


def _has_default(one: Field[Any]) -> bool:
    return one.default is not MISSING or one.default_factory is not MISSING


def _fields(made: Any) -> tuple[Field[Any], ...]:
    return fields(made)


def _compared(made: type, of: str) -> str:
    return "".join(f"{of}.{one.name}, " for one in _fields(made) if one.compare)


def _equality_of(made: type) -> Any:
    return _compile(
        made,
        "__eq__(self, other)",
        "if other.__class__ is not self.__class__: return NotImplemented\n"
        f"  return ({_compared(made, 'self')}) == ({_compared(made, 'other')})",
        {},
    )


def _hash_of(made: type) -> Any:
    hashed = [one for one in _fields(made) if (one.compare if one.hash is None else one.hash)]
    shown = "".join(f"self.{one.name}, " for one in hashed)
    return _compile(made, "__hash__(self)", f"return hash(({shown}))", {})


@recursive_repr()
def _show(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: Any, state: list[object]) -> None:
    for one, kept in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, kept)
