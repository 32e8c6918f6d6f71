"""Contents: what a person enables, in full: the files as they are now and as they were enabled."""

import hashlib

from agiraph.domain.errors import NotFound, Refused
from agiraph.domain.value import value
from agiraph.extensions import consents
from agiraph.extensions.finding import LONGEST_BYTES, PACKAGE, Found, find_one
from agiraph.home import skill_folders
from agiraph.home.layout import Home
from agiraph.home.safe_folder import Folder

COPIES = "enabled-code"
"""The folder of a home with the files that a person has enabled, each named by its hash."""


@value
class FileText:
    """One file, as it was enabled and as it is now."""

    path: str
    before: str | None = None
    """None: it was not enabled before, or no copy was kept."""
    now: str | None = None
    """None: the file is gone."""


@value
class Content:
    """All files that a consent covers."""

    sha256: str
    """The hash that a person enables with this content."""
    files: tuple[FileText, ...]


def keep_copy(home: Home, found: Found) -> None:
    """Keep the bytes of an enabled file, so that a later change can be shown beside them."""
    if found.data:
        home.folder.write(f"{COPIES}/{found.sha256}", found.data)


def of_extension(home: Home, identity: str) -> Content:
    """Return the file of an extension; raise `Refused` for a package, which has many files."""
    if identity.startswith(PACKAGE):
        raise Refused("A package has no single file to show; look at its source where it is made.")
    found = find_one(home, identity)
    if found.problem:
        raise Refused(f"{identity} cannot be shown: {found.problem}")
    given = consents.read(home).enabled.get(found.id)
    before = None if given is None else _copy(home, given.sha256)
    text = FileText(path=found.id, before=before, now=_text(found.data))
    return Content(sha256=found.sha256, files=(text,))


def of_skill(home: Home, found: skill_folders.SkillFiles, enabled: str) -> Content:
    """Return the files of a skill beside those of the copy with the hash `enabled`."""
    before: dict[str, bytes] = {}
    if enabled:
        try:
            copy = skill_folders.read(home.path, f"{skill_folders.COPIES}/{enabled}")
            before = dict(copy.files)
        except Refused:
            pass  # the copy is gone: nothing can be compared
    names = sorted({*before, *found.files})
    return Content(
        sha256=found.sha256,
        files=tuple(
            FileText(
                path=name,
                before=_text(before[name]) if name in before else None,
                now=_text(found.files[name]) if name in found.files else None,
            )
            for name in names
        ),
    )


def _copy(home: Home, sha256: str) -> str | None:
    """Return the copy with this hash; None if there is none or it was changed."""
    try:
        with Folder.open(home.path) as folder:
            data = folder.read(f"{COPIES}/{sha256}", limit=LONGEST_BYTES + 1)
    except (NotFound, Refused, OSError):
        return None
    return _text(data) if hashlib.sha256(data).hexdigest() == sha256 else None


def _text(data: bytes) -> str:
    """Return bytes as text; what is not UTF-8 is described."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"(not text: {len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()})"
