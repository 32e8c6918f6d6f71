"""Features: what each feature brings to the core, to the API and to the command line.

A feature names its parts by their places (`module:name`), so that a module is imported when its
kind of work, its tool, its route or its command is first used. Nothing else names a feature.
"""

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any

from agiraph.core.domain.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One feature: its folder below `agiraph.features` holds all of its code."""

    name: str
    kinds: tuple[str, ...] = ()
    """Names of the kinds of work that it brings."""
    kinds_at: str = ""
    """The place of a mapping of these names to their `WorkKind`."""
    tools: str = ""
    """The place of a tuple of tools for agents at work."""
    reply_tools: str = ""
    """The place of a tuple of tools for replies to people."""
    actions: Mapping[str, str] = field(default_factory=dict[str, str])
    """The places of `Action`s, which triggers carry out, by the names of the actions."""
    judge: str = ""
    """The place of what a result goes through before it counts (`tools.work.judged`)."""
    workers: Mapping[str, str] = field(default_factory=dict[str, str])
    """The places of what runs a task instead of a model, by the kind of its agent."""
    verbs: str = ""
    """The place of its `FeatureVerbs`: what it does and says in transactions of the core."""
    teller: str = ""
    """The place of its `Teller`: what it tells the thread of a new task."""
    sets_aside: str = ""
    """The place of what keeps words of a labelled thread for a file that later threads read as the
    team's own (`tools.files.kept_writes.write`)."""
    refreshes: str = ""
    """The place of what is awaited before all texts of a team are searched."""
    routers: tuple[str, ...] = ()
    """The places of the routers of its part of the API."""
    serves_commands: bool = False
    """Whether commands use its routes without a server, too."""
    commands: Mapping[str, str] = field(default_factory=dict[str, str])
    """The modules of its commands, by their names."""
    error_forms: Mapping[str, str] = field(default_factory=dict[str, str])
    """By the beginning of a path, the place of what writes the errors below it."""
    open_pages: tuple[str, ...] = ()
    """The beginnings of the paths of its pages that need no session: what follows is a secret,
    which no log may hold."""
    forgets_below: str = ""
    """The place of what removes what it keeps of a folder of a home that is removed."""
    settings: str = ""
    """The place of what reads its settings: it gets the `Picker` of `config`. Their value is
    `Settings.features[name]`, which its part is given."""
    settings_tables: tuple[str, ...] = ()
    """The names of its tables in agiraph.toml."""
    part: str = ""
    """The place of what opens its `Part` of a runtime (`core/runtime/parts.py`): it is awaited with
    the `Installation`."""
    checks: str = ""
    """The place of what is awaited with a `Checkup` (`doctor/checkup.py`), to add its findings."""
    tables: str = ""
    """The place of a tuple of tables whose rows belong to a team. Tables that refer to others of
    them come first."""


@cache
def installed() -> tuple[Feature, ...]:
    """Return all features, in the order of their list."""
    names: tuple[str, ...] = import_module("agiraph.features").NAMES
    return tuple(import_module(f"agiraph.features.{name}").FEATURE for name in names)


@cache
def found_at(place: str) -> Any:
    """Return the object that `module:name` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def brought(part: str) -> list[Any]:
    """Return the objects at one kind of place of every feature that has it, in the order of the
    features' names: `brought("tools")`."""
    named = sorted(installed(), key=attrgetter("name"))
    places = [getattr(feature, part) for feature in named]
    return [found_at(place) for place in places if place]


def worker_of(kind: str) -> Any:
    """Return what runs the tasks of agents of a kind without a model."""
    places = {kind: place for feature in installed() for kind, place in feature.workers.items()}
    return found_at(places[kind])


def open_page(path: str) -> str:
    """Return how the path of a page that needs no session begins; empty: it is no such page."""
    begins = (begin for feature in installed() for begin in feature.open_pages)
    return next((begin for begin in begins if path.startswith(begin)), "")


def error_form(path: str) -> Any:
    """Return what writes the errors of a path in a form of its own; None: they are problem
    documents."""
    for feature in installed():
        for begin, place in feature.error_forms.items():
            if path == begin or path.startswith(f"{begin}/"):
                return found_at(place)
    return None
