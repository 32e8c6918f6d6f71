"""Package names: which packages a command may ask an index for.

A name goes to the index, and its owner sees how often a package is downloaded. So a command that
untrusted text is behind could spell out what it knows by the names it asks for. It may only ask
for names that no stranger can have made up: those that the team has declared before, those that a
person granted, well-known ones, and the dependencies of such packages.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib import resources
from typing import Literal

from agiraph.late_patterns import late

Ecosystem = Literal["python", "npm", "cargo"]

_GRAMMAR: dict[Ecosystem, re.Pattern[str]] = {
    "python": late(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?"),
    "npm": late(r"(?:@[a-z0-9~-][a-z0-9._~-]{0,60}/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]{0,120}"),
    "cargo": late(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"),
}
_WORD = late(r"@?[A-Za-z0-9~_][A-Za-z0-9._~/-]*")
_INSTALL = late(
    r"\b(?:pip3?|uv|pipx|poetry|npm|npx|yarn|pnpm|cargo)\s+(?:pip\s+)?"
    r"(?:install|add|i|exec|create|init)\s([^;&|\n]*)"
)
_VERSION = late(r"[=<>!~\[]|(?<=.)@")
"""Where the name of a package ends: `rich==13`, `left-pad@1.3`, but not `@types/node`."""
MOST_TEXT = 4 * 2**20
"""Characters of text that are searched for names."""

NOT_KNOWN = (
    "The package {name!r} was not asked for: this work holds words from outside the team, and a "
    "name can carry what it knows to the package's owner. A person allows it with "
    '`agiraph grant {team} packages {name}`; or make the same call with network="open", and a '
    "person is asked."
)


def is_name(ecosystem: Ecosystem, name: str) -> bool:
    """Whether this can be the name of a package."""
    return _GRAMMAR[ecosystem].fullmatch(name) is not None


def normalized(ecosystem: Ecosystem, name: str) -> str:
    """Return the spelling of a name under which an index compares it."""
    if ecosystem == "python":
        return re.sub(r"[-_.]+", "-", name).lower()
    return name.lower().replace("_", "-") if ecosystem == "cargo" else name


def names_in(text: str) -> frozenset[str]:
    """Return all words of a text that may be names of packages.

    Where a name ends depends on the kind of file, so a word also counts without its end from the
    first character on that can follow a name: `rich==13`, `left-pad@1.3`, `serde/derive`.
    """
    found: set[str] = set()
    for word in _WORD.findall(text[:MOST_TEXT]):
        scope, slash, rest = word.partition("/")
        found |= {word.rstrip("./-"), scope.rstrip(".-")}
        if slash and scope.startswith("@"):
            found.add(f"{scope}/{rest.partition('/')[0].rstrip('.-')}")
        found |= {part for part in word.split("/") if part}
    return frozenset(found)


def installed_names(command: str) -> frozenset[str]:
    """Return the packages that a shell command names for an installer, such as `pip install x`.

    A word behind an option such as `--index-url` is none, and no other word of the command counts:
    it may be a secret.
    """
    found: set[str] = set()
    for part in _INSTALL.findall(command):
        words = part.split()
        for before, word in zip(["", *words], words, strict=False):
            is_value = before.startswith("--") and "=" not in before
            name = _VERSION.split(word.strip("'\""), maxsplit=1)[0]
            if name and not word.startswith("-") and not is_value and "://" not in word:
                found.add(name)
    return frozenset(found)


@cache
def well_known(ecosystem: Ecosystem) -> frozenset[str]:
    """Return the names of much used packages that ship with agiraph."""
    text = (
        resources.files("agiraph.sandbox.gate").joinpath("popular", f"{ecosystem}.txt").read_text()
    )
    return frozenset(normalized(ecosystem, name) for name in text.split())


class PackageNames:
    """Decides for one command which names it may ask for.

    A command of a clean thread asks for any package, until it has received the first file of one:
    from then on untrusted code may run in it. A command of a labelled thread is bound from the
    start.
    """

    def __init__(
        self,
        *,
        is_bound: bool = False,
        granted: Iterable[str] = (),
        declared: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.is_bound: bool = is_bound
        self._granted = frozenset(granted)
        self._read_declared = declared
        self._declared: frozenset[str] | None = None
        self._known: set[tuple[Ecosystem, str]] = set()

    def read_declared(self) -> None:
        """Read the names that the team has written down: before untrusted code can add some.

        May read files: call it in a thread. Later calls do nothing.
        """
        if self._declared is None:
            self._declared = frozenset(self._read_declared())

    def allows(self, ecosystem: Ecosystem, name: str) -> bool:
        """Whether the command may ask for this package."""
        wanted = normalized(ecosystem, name)
        if not self.is_bound or (ecosystem, wanted) in self._known:
            # A package that was asked for freely may be asked for again, also once it is bound.
            self._known.add((ecosystem, wanted))
            return True
        written = self._granted | (self._declared or frozenset())
        return wanted in well_known(ecosystem) or any(
            normalized(ecosystem, known) == wanted for known in written
        )

    def learn(self, ecosystem: Ecosystem, dependencies: Iterable[str]) -> None:
        """Allow the packages on which an allowed one depends."""
        self._known |= {(ecosystem, normalized(ecosystem, name)) for name in dependencies}

    def bind(self) -> None:
        """Bind the command to known names: it receives a file, so untrusted code may run."""
        self.is_bound = True
