"""Finding: lists the extensions of a home and of installed packages, each with its hash.

No code of theirs runs here: a file is read, and of a package its list of files and their bytes.
"""

import hashlib
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, entry_points
from pathlib import Path
from typing import Literal

import orjson

from agiraph.core.domain.errors import Conflict, Refused
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.core.home.safe_folder import Entry, Folder
from agiraph.core.tools.own_code import KINDS, Declaration, Kind, ToolDeclaration
from agiraph.features.extensions import pinned
from agiraph.features.extensions.pinned import Consent, Item, State, Status

LONGEST_BYTES = 2**20
"""The longest file of a person; larger code belongs into a package."""
MOST_FILES = 200
"""Files in one folder that are looked at."""
PACKAGE_FILES, PACKAGE_BYTES = 5000, 64 * 2**20
"""The largest package that is hashed."""
PACKAGE = "package:"
"""The beginning of the id of a package's entry point."""
CONSENT = "Its code then runs inside of the runtime, with all that your user may do. Read it first."
"""What a person is told before they enable own code, by command or in the web UI."""
Source = Literal["file", "package"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found(Item):
    """A file or a package's entry point that a person may enable. Its id is `tools/weather.py`, or
    `package:NAME/tools/ENTRY`."""

    kind: Kind
    source: Source
    entry_point: EntryPoint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One tool, engine, channel or provider that an extension declares."""

    name: str
    touches: str = ""
    effect: str = ""
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, declared: Declaration) -> "Offer":
        name, secrets = declared.name, declared.secrets
        if not isinstance(declared, ToolDeclaration):
            return cls(name=name, secrets=secrets)
        return cls(name=name, touches=declared.touches, effect=declared.effect, secrets=secrets)

    def __str__(self) -> str:
        said = [self.touches] if self.touches else []
        said += [f"secrets: {', '.join(self.secrets)}"] if self.secrets else []
        return f"{self.name} ({'; '.join(said)})" if said else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionStatus(Status):
    """The state of one extension."""

    kind: Kind
    source: Source
    offers: tuple[Offer, ...] = ()
    """What it declares; known only of an extension that is on."""

    @property
    def about(self) -> str:
        return ", ".join(map(str, self.offers))


def status(
    found: Found,
    *,
    state: State,
    problem: str = "",
    given: Consent | None = None,
    declared: Iterable[Declaration] = (),
) -> ExtensionStatus:
    return ExtensionStatus(
        id=found.id,
        kind=found.kind,
        source=found.source,
        sha256=found.sha256,
        state=state,
        problem=problem or found.problem,
        enabled_at=None if given is None else given.at,
        offers=tuple(map(Offer.of, declared)),
    )


def content_of(home: Home, identity: str) -> tuple[Found, Mapping[str, bytes]]:
    """Return an extension with its file as it was enabled; raise `Refused` for a package, which has
    many files."""
    if identity.startswith(PACKAGE):
        raise Refused("A package has no single file to show; look at its source where it is made.")
    found = find_one(home, identity)
    if found.problem:
        raise Refused(f"{identity} cannot be shown: {found.problem}")
    return found, pinned.copy(home, found.id)


def put(home: Home, identity: str, text: str) -> Found:
    """Write a new file into the home, where it is off until a person enables it, and return it;
    raise `Conflict` if there is a file of this name."""
    kind, _, name = identity.partition("/")
    stem = name.removesuffix(".py")
    if kind not in KINDS or stem == name or not (stem.isascii() and stem.isidentifier()):
        raise Refused(f"{identity!r} is no file for own code: write tools/NAME.py.")
    if stem.startswith("_"):
        raise Refused(f"{identity!r} would not be found: a name begins with a letter.")
    data = text.encode(errors="replace")
    if len(data) > LONGEST_BYTES:
        raise Refused(f"It is longer than {LONGEST_BYTES // 1024} KiB; make it a package.")
    home.folder.sub(kind, create=True).close()
    if home.folder.exists(identity):
        raise Conflict(
            f"There is a file {identity} already. Change it there, or take another name."
        )
    home.folder.write(identity, data)
    return find_one(home, identity)


def find(home: Home, *, packages: bool = True) -> list[Found]:
    """Return all extensions of the home and of installed packages, files first, sorted by id."""
    found = [one for kind in KINDS for one in _files(home, kind)]
    if packages:
        made = [
            _package(kind, point)
            for kind in KINDS
            for point in entry_points(group=f"agiraph.{kind}")
        ]
        found += sorted(made, key=lambda one: one.id)
    return found


def find_one(home: Home, identity: str) -> Found:
    """Return one extension, read from disk again; raise `Refused` with the known ids if it is not
    there."""
    known = find(home)
    for found in known:
        if found.id == identity:
            return found
    # A person may leave out the folder and the ending.
    short = [found for found in known if identity in (_stem(found.id), f"{_stem(found.id)}.py")]
    if len(short) == 1:
        return short[0]
    near = ", ".join(found.id for found in known) or "none; put a file into tools/ of the home"
    raise Refused(f"There is no extension {identity!r}. There are: {near}.")


def _stem(identity: str) -> str:
    return identity.rpartition("/")[2].removesuffix(".py")


def _files(home: Home, kind: Kind) -> list[Found]:
    try:
        if not home.folder.exists(kind):
            return []
        with home.folder.sub(kind) as folder:
            entries = [entry for entry in folder.list(limit=MOST_FILES) if _counts(entry)]
            return [_file(folder, kind, entry) for entry in entries]
    except Refused as error:
        return [Found(id=f"{kind}/", kind=kind, source="file", problem=str(error))]


def _counts(entry: Entry) -> bool:
    """Whether a file in the folder may be an extension."""
    return entry.name.endswith(".py") and not entry.name.startswith((".", "_"))


def _file(folder: Folder, kind: Kind, entry: Entry) -> Found:
    identity = f"{kind}/{entry.name}"
    try:
        if entry.kind != "file":
            raise Refused("it is not a regular file; put the file itself there, not a link to it.")
        data = folder.read(entry.name, limit=LONGEST_BYTES + 1)
        if len(data) > LONGEST_BYTES:
            raise Refused(f"it is longer than {LONGEST_BYTES // 1024} KiB; make it a package.")
    except (Refused, OSError) as error:
        return Found(id=identity, kind=kind, source="file", problem=str(error))
    sha256 = hashlib.sha256(data).hexdigest()
    return Found(id=identity, kind=kind, source="file", sha256=sha256, files={identity: data})


def _package(kind: Kind, point: EntryPoint) -> Found:
    dist = point.dist
    name = "unknown" if dist is None else str(dist.metadata["Name"])
    identity = f"{PACKAGE}{name}/{kind}/{point.name}"
    try:
        if dist is None:
            raise Refused("its package cannot be found.")
        sha256 = _hash(dist, point)
    except (Refused, OSError, PackageNotFoundError, ValueError) as error:
        return Found(id=identity, kind=kind, source="package", problem=str(error))
    return Found(id=identity, kind=kind, source="package", sha256=sha256, entry_point=point)


def _hash(dist: Distribution, point: EntryPoint) -> str:
    """Return a hash of the entry point and of all files that the package has installed."""
    if _is_editable(dist):
        raise Refused("it is installed as editable, so its files are not known; install it.")
    digest = hashlib.sha256(f"{point.group}\n{point.name}\n{point.value}\n".encode())
    files = sorted(str(file) for file in dist.files or () if not str(file).endswith(".pyc"))
    if not files or len(files) > PACKAGE_FILES:
        raise Refused(f"it has {counted(len(files), 'file')}; 1 to {PACKAGE_FILES} can be pinned.")
    left = PACKAGE_BYTES
    for name in files:
        path = Path(str(dist.locate_file(name)))
        data = path.read_bytes() if path.is_file() else b""
        left -= len(data)
        if left < 0:
            raise Refused(f"it has more than {PACKAGE_BYTES // 2**20} MiB, too much to pin.")
        digest.update(f"{name}\n{hashlib.sha256(data).hexdigest()}\n".encode())
    return digest.hexdigest()


def _is_editable(dist: Distribution) -> bool:
    try:
        about = orjson.loads(dist.read_text("direct_url.json") or "{}")
    except orjson.JSONDecodeError:
        return False
    return bool(about.get("dir_info", {}).get("editable"))
