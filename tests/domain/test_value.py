"""Values: classes whose methods are compiled late behave as those of `dataclasses`."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import KW_ONLY, FrozenInstanceError, field, replace
from typing import Any

import pytest

from agiraph.core.domain import value as ours
from agiraph.core.domain.value import value

FORMS: list[dict[str, bool]] = [
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True},
    {"frozen": True},
    {"slots": True},
    {"slots": True, "eq": False},
    {"frozen": True, "slots": True, "eq": False},
]


def _make(dataclass: Callable[..., Any], form: dict[str, bool]) -> Any:
    class Place:
        name: str
        heights: list[int] = field(default_factory=list[int], hash=False)
        zone: str = "UTC"
        note: str = field(default="", repr=False, compare=False)
        _: KW_ONLY
        length: int = field(init=False, default=0)
        keyed: int = 7

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", len(self.name))

    Place.__qualname__ = "Place"
    return dataclass(**form)(Place)


def _tried(act: Callable[[], object]) -> object:
    try:
        return act()
    except (TypeError, FrozenInstanceError) as error:
        return type(error), str(error).replace("Place.__init__", "__init__")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: " ".join(form))
def test_a_class_whose_methods_are_compiled_late_is_like_a_standard_one(
    form: dict[str, bool],
) -> None:
    def observed(cls: Any) -> list[object]:
        one, same = cls(name="Oslo", heights=[1]), cls(name="Oslo", heights=[1], note="x")
        other = cls(name="Rome", zone="CET", keyed=8)
        tries: list[Callable[[], object]] = [
            lambda: [repr(each) for each in (one, same, other)],
            lambda: [one == same, one == other, one != other, one == "Oslo"],
            lambda: hash(one) == hash(same),
            lambda: {one, other} == {other, one},
            lambda: cls(),
            lambda: cls("Oslo"),
            lambda: cls("Oslo", [2], "CET"),
            lambda: cls("Oslo", [2], "CET", "x", 3),
            lambda: cls(name="Oslo", length=3),
            lambda: setattr(one, "zone", "CET"),
            lambda: delattr(one, "zone"),
            lambda: repr(copy.copy(other)),
            lambda: repr(copy.deepcopy(other)),
            lambda: cls.__match_args__,
            lambda: cls(name="Oslo").heights is cls(name="Oslo").heights,
        ]
        told = [_tried(act) for act in tries]
        return [repr(each) if isinstance(each, cls) else each for each in told]

    assert observed(_make(ours.dataclass, form)) == observed(_make(dataclasses.dataclass, form))


@ours.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


@ours.dataclass(frozen=True, slots=True)
class Named(Point):
    name: str = ""

    def __repr__(self) -> str:
        return self.name


@value
class Size:
    width: int
    parts: tuple["Size", ...] = ()


def test_a_class_inherits_fields_and_keeps_its_own_methods() -> None:
    named = Named(1, name="a")
    assert (named.y, repr(named), named == Named(1, 0, "a"), named == Point(1)) == (
        0,
        "a",
        True,
        False,
    )
    assert repr(Point(1)) == "Point(x=1, y=0)"


def test_a_record_can_be_kept_and_read_again() -> None:
    kept = (Named(3, 4, "b"), Size(width=1, parts=(Size(width=2),)))
    assert pickle.loads(pickle.dumps(kept)) == kept
    assert hash(kept[1]) == hash(Size(width=1, parts=(Size(width=2),)))
    assert replace(kept[1], width=5) == Size(width=5, parts=(Size(width=2),))


def test_a_class_has_no_description_that_nobody_wrote() -> None:
    assert (Size.__doc__, Point.__doc__) == (None, None)
