"""The public API: `agiraph` has every name in `__all__`, and loads it on first use."""

import subprocess
import sys
from collections.abc import Iterator
from inspect import getmembers, isfunction
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import agiraph
from agiraph import Client, World


@pytest.mark.parametrize("name", agiraph.__all__)
def test_every_declared_name_exists(name: str) -> None:
    assert name in dir(agiraph)
    assert getattr(agiraph, name) is not None


def test_public_names_are_the_objects_of_their_modules() -> None:
    from agiraph.client import Client as SameClient
    from agiraph.testing import World as SameWorld

    assert (Client, World) == (SameClient, SameWorld)
    with pytest.raises(AttributeError, match="module 'agiraph' has no attribute 'Missing'"):
        agiraph.Missing  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue]


def test_importing_agiraph_loads_no_submodule() -> None:
    show = "import sys, agiraph; print(*(name for name in sys.modules if 'agiraph' in name))"
    shown = subprocess.run([sys.executable, "-c", show], capture_output=True, check=True, text=True)
    # An editable install adds a module of setuptools whose name begins with two underscores.
    assert [name for name in shown.stdout.split() if not name.startswith("__")] == ["agiraph"]


def classes_in(hint: Any) -> Iterator[type]:
    """The classes that an annotation names, also inside of lists and unions."""
    if isinstance(hint, type) and not get_args(hint):
        yield hint
    for part in get_args(hint):
        yield from classes_in(part)


def test_every_type_that_the_client_returns_is_public() -> None:
    """A caller can name the type of every value without importing an internal module."""
    operations = [function for name, function in getmembers(Client, isfunction) if name[0] != "_"]
    hints = [get_type_hints(operation).get("return") for operation in operations]
    returned = {kind for hint in hints for kind in classes_in(hint)}
    own = {kind.__name__ for kind in returned if kind.__module__.startswith("agiraph.")}
    assert "TeamView" in own
    assert own - set(agiraph.__all__) == set[str]()


async def test_a_world_refuses_an_option_that_it_does_not_know(tmp_path: Path) -> None:
    unknown: Any = {"channels": {}}
    with pytest.raises(TypeError, match="A runtime has no option channels; it has: callbacks, "):
        await World(tmp_path / "home", **unknown).start()
