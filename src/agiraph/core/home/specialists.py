"""Specialists: reads the files that describe agents to hire, built in and from the home.

A file has front matter (name, description, tools, model, effort, examples, when_not_to_use) and a
body, the prompt. Agent files of Claude Code load unchanged; their tool names are mapped to ours.
"""

import contextlib
import logging
import re
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, ValuesView
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

from agiraph.core.domain.agents import Specialist
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Effort, parse_effort
from agiraph.core.home import front_matter
from agiraph.core.home.layout import Home

log: logging.Logger = logging.getLogger("agiraph.specialists")

FOLDER = "agents"
"""The folder of a home with the files of its own specialists."""
LONGEST = 64 * 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_TAKEN = frozenset({"coordinator", "worker", "human", "system", "everyone", "new", "cli"})
"""Reserved words: each means something else where a specialist's name can be used."""

_OTHER_NAMES = {
    "Read": ("read_file",),
    "Write": ("write_file",),
    "Edit": ("edit_file",),
    "MultiEdit": ("edit_file",),
    "Bash": ("bash",),
    "Grep": ("read_file",),
    "Glob": ("list_files",),
    "LS": ("list_files",),
    "WebSearch": ("web_search",),
    "WebFetch": ("web_fetch",),
    "Task": ("assign_task", "task_output"),
    "Agent": ("assign_task", "task_output"),
    "*": (),
}
"""Tool names of Claude Code, and our tools that do the same."""


def specialists(home: Home | None = None) -> dict[str, Specialist]:
    """Return all specialists by name. A file that cannot be read is logged and skipped."""
    found = [*_of_agiraph()]
    if home is not None and home.folder.exists(FOLDER):
        found += _of_home(home)
    # `sorted` is stable: of two files with one name, the home's comes after the built-in one and
    # replaces it.
    return {s.name: s for s in sorted(found, key=lambda s: s.name)}


Source = Literal["built_in", "home", "replaced"]


@value
class KnownSpecialist:
    """A specialist with its file, and where the file is."""

    specialist: Specialist
    text: str
    source: Source


class LiveSpecialists(Mapping[str, Specialist]):
    """The specialists of a home by name. Files that a person changes count from then on."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._read: tuple[object, dict[str, Specialist]] = (None, {})

    def _current(self) -> dict[str, Specialist]:
        stamp = _stamp(self._home)
        if self._read[0] != stamp:
            self._read = (stamp, specialists(self._home))
        return self._read[1]

    def __getitem__(self, name: str) -> Specialist:
        return self._current()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._current())

    def __len__(self) -> int:
        return len(self._current())

    # One look at the files for all entries, not one for each.
    def items(self) -> ItemsView[str, Specialist]:
        return self._current().items()

    def values(self) -> ValuesView[Specialist]:
        return self._current().values()


def _stamp(home: Home) -> object:
    """Return a value that changes whenever a file of a specialist does."""
    if not home.folder.exists(FOLDER):
        return ()
    entries = home.folder.list(FOLDER)
    return tuple(sorted((e.name, e.kind, e.size, e.modified.timestamp()) for e in entries))


def listed(home: Home) -> list[KnownSpecialist]:
    """Return all specialists with their files, by name."""
    ours = files("agiraph") / "specialists"
    texts = {one.name: one.read_text() for one in ours.iterdir() if one.name.endswith(".md")}
    built_in = {parse(text, name.removesuffix(".md")).name: text for name, text in texts.items()}
    of_home = _texts_of_home(home)
    found: list[KnownSpecialist] = []
    for name, one in specialists(home).items():
        own = of_home.get(name)
        source: Source = "built_in" if own is None else "replaced" if name in built_in else "home"
        text = built_in[name] if own is None else own[1]
        found.append(KnownSpecialist(specialist=one, text=text, source=source))
    return found


def find(home: Home, name: str) -> KnownSpecialist:
    """Return the specialist of this name, or raise `NotFound`."""
    known = {one.specialist.name: one for one in listed(home)}
    if name not in known:
        raise NotFound("specialist", name, known=f"There are: {', '.join(known)}.")
    return known[name]


def write(home: Home, name: str, text: str) -> KnownSpecialist:
    """Write a specialist's file into the home; raise `Refused` if it describes none."""
    checked(name, text)
    file = _texts_of_home(home).get(name, (f"{name}.md", ""))[0]
    home.folder.sub(FOLDER, create=True).close()
    home.folder.write(f"{FOLDER}/{file}", text.encode(errors="replace"))
    return find(home, name)


def checked(name: str, text: str) -> Specialist:
    """Return the specialist that a file describes; raise `Refused` unless it has this name."""
    try:
        found = parse(text, name)
    except Refused as error:
        raise Refused(f"The file cannot be used: {error}") from error
    if found.name != name:
        raise Refused(
            f"The file says `name: {found.name}`, but {name!r} is to be written. Use the same "
            "name in both."
        )
    return found


def delete(home: Home, name: str) -> None:
    """Remove a specialist's file from the home; raise `Refused` if the home has none."""
    own = _texts_of_home(home).get(find(home, name).specialist.name)
    if own is None:
        raise Refused(f"{name!r} comes with agiraph and cannot be deleted; write a file instead.")
    home.folder.remove(f"{FOLDER}/{own[0]}")


def _texts_of_home(home: Home) -> dict[str, tuple[str, str]]:
    """Return the home's files by the specialist's name: file name and text."""
    found: dict[str, tuple[str, str]] = {}
    if not home.folder.exists(FOLDER):
        return found
    with home.folder.sub(FOLDER) as folder:
        for entry in sorted(folder.list(), key=lambda entry: entry.name):
            if entry.kind != "file" or not entry.name.endswith(".md"):
                continue
            text = folder.read(entry.name, limit=LONGEST + 1).decode(errors="replace")
            with contextlib.suppress(Refused):  # `specialists` logs what is wrong with it
                found[parse(text, entry.name.removesuffix(".md")).name] = (entry.name, text)
    return found


@cache
def _of_agiraph() -> tuple[Specialist, ...]:
    """Return the built-in specialists; read once, since they never change."""
    ours = files("agiraph") / "specialists"
    names = [file.name for file in ours.iterdir()]
    return tuple(_read("agiraph", names, lambda name: ours.joinpath(name).read_bytes()))


def _of_home(home: Home) -> list[Specialist]:
    try:
        with home.folder.sub(FOLDER) as folder:
            names = [entry.name for entry in folder.list() if entry.kind == "file"]
            return [*_read("home", names, lambda name: folder.read(name, limit=LONGEST + 1))]
    except Refused as error:
        log.warning("agents/ (home) is left out: %s", error)
        return []


def _read(source: str, names: Iterable[str], read: Callable[[str], bytes]) -> Iterator[Specialist]:
    for name in sorted(names):
        if not name.endswith(".md"):
            continue
        try:
            yield parse(read(name).decode(errors="replace"), name.removesuffix(".md"))
        except Refused as error:
            log.warning("agents/%s (%s) is left out: %s", name, source, error)


def parse(text: str, file_name: str) -> Specialist:
    """Return the specialist that a file describes, or raise `Refused` with what is missing."""
    if len(text.encode()) > LONGEST:
        raise Refused(f"it is longer than {LONGEST:,} bytes.")
    about, body = front_matter.split(text)
    name = str(about.get("name") or file_name).strip().lower()
    if not _NAME.fullmatch(name):
        raise Refused(f"its name {name!r} is not made of small letters, digits, - and _.")
    if name in _TAKEN:
        raise Refused(f"the name {name!r} is reserved; choose another.")
    description = str(about.get("description") or "").strip()
    if not description:
        raise Refused("it has no description: say when to use it.")
    model = str(about.get("model") or "")
    return Specialist(
        name=name,
        description=description,
        prompt=body,
        tools=_tools(about.get("tools")),
        model=model if "/" in model else "",  # "inherit", "sonnet": the hiring agent's model
        effort=_effort(about.get("effort")),
        examples=tuple(str(e).strip() for e in _listed(about.get("examples"), by=None)),
        when_not_to_use=_sentence(about.get("when_not_to_use")),
    )


def _effort(value: Any) -> Effort | None:
    """Return the effort in a file. Claude Code's files have one more level, `xhigh`."""
    # YAML reads a bare `no` or `off` as False; `none` is a word.
    word = "" if value is None else str(value).strip().lower()
    return parse_effort({"xhigh": "max", "minimal": "low"}.get(word, word))


def _listed(value: Any, *, by: str | None) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, list):
        return cast(list[Any], value)
    return [str(value)] if by is None else str(value).split(by)


def _sentence(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(str(line).strip() for line in cast(list[Any], value))
    return str(value or "").strip()


def _tools(value: Any) -> tuple[str, ...]:
    named = [str(name).strip() for name in _listed(value, by=",")]
    ours = [tool for name in named if name for tool in _OTHER_NAMES.get(name, (name,))]
    return tuple(dict.fromkeys(ours))
