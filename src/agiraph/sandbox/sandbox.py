"""Sandbox: what a command of an agent sees and may use, whichever level enforces it.

A command sees a read-only system, the files that its agent's file tools may read, and the folders
that a person gave the team; it may write to its own node's folder. Nothing else of the machine is
there: no token, no database, no other team, no home of the user. `levels` chooses how this is
enforced, the supervisor enforces it (`confinement`).
"""

import marshal
import os
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack

from pydantic import Field

from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.provenance.confinement import Level
from agiraph.core.domain.records.skills import Skill
from agiraph.core.domain.sections import entry
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import UPLOADS, Home
from agiraph.core.home.node_folder import PUBLISHED, REFS, SCRATCH, SPEC
from agiraph.core.home.scopes import Area, Scope
from agiraph.sandbox import bubblewrap
from agiraph.sandbox.folders import git_guard
from agiraph.sandbox.folders.git_guard import Guard
from agiraph.sandbox.inside import confinement, seccomp

NetworkKind = Literal["none", "gate", "open"]
"""none: a loopback of its own. gate: also a listener that the runtime serves. open: the machine's
network."""

MOST_PUBLISHED = 200
"""The most `published` folders that a command sees: its references, then the newest."""
MOST_HIDDEN = 200
"""The most paths that are covered one by one: each is a mount, which takes time at the start."""
OWN_HOME = "_home"
"""The folder of a node that is the HOME of commands which may not write to the whole node."""
FOLDERS = "/folders"
"""Where commands see links to the folders that a person gave the team."""
SKILLS = "/skills"
"""Where commands see links to the skills that a person has enabled."""
GATE_PORT = confinement.GATE_PORT
SPARE_USERS, FIRST_SPARE_USER = 60_000, 200_000
"""Numbers of the users as which root's commands run: one for each team, without a name."""
TMP_MIB = 256
"""The size of each folder in memory: /tmp, /run and /var/tmp."""
THREADS_PER_PROCESS = 4
"""The kernel counts threads like processes; the guard counts processes alone."""
ADDRESS_FACTOR, LEAST_ADDRESS_MIB = 4, 16_384
"""Programs reserve much more addresses than memory."""
TEMPORARY = "tmp"
"""The folder for temporary files of a command that cannot have a /tmp of its own, in its spool."""
SHARE_OF_MEMORY = 0.75
"""The share of the machine's memory that commands may use at most, whatever their limits say."""

SYSTEM = (
    "/usr", "/opt", "/nix/store", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
    *(
        f"/etc/{name}"
        for name in (
            "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl", "pki", "ca-certificates",
            "ca-certificates.conf", "alternatives", "nsswitch.conf", "localtime", "timezone",
            "mime.types", "debian_version", "os-release", "lsb-release", "profile", "bash.bashrc",
            "inputrc", "services", "protocols", "magic", "fonts", "terminfo", "java", "perl",
            "R", "texmf", "host.conf", "gai.conf", "python3", "login.defs", "shells",
        )
    ),
)  # fmt: skip
"""Paths of the machine that every command can read. Of /etc only what holds no secret."""
NAMES = ("/etc/passwd", "/etc/group", "/etc/hosts")
"""Files that are written for the command where it has a root folder of its own."""
OF_NETWORK = ("/etc/resolv.conf", "/etc/hosts")


_Count = Annotated[int, Field(ge=1)]


@entry
class Limits:
    """Limits for all processes of one command together; `file_mib` applies to each file.

    The limits of a team and of all hold for the commands that run at the same time.
    """

    processes: _Count = 512
    memory_mib: _Count = 8192
    file_mib: _Count = 4096
    free_disk_mib: _Count = 256
    """MiB that must stay free on the disk of its folder."""
    team_processes: _Count = 1024
    team_memory_mib: _Count = 12_288
    all_processes: _Count = 2048
    all_memory_mib: _Count = 16_384

    def for_machine(self) -> "Limits":
        """Return these limits, with no more memory than the machine can spare."""
        most = _spare_mib()
        return replace(
            self,
            memory_mib=min(self.memory_mib, most),
            team_memory_mib=min(self.team_memory_mib, most),
            all_memory_mib=min(self.all_memory_mib, most),
        )


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A file or folder that a command sees; its source contains no symbolic link."""

    source: Path
    target: Path
    """The path at which the command sees it; `landlock` cannot show it elsewhere."""
    is_writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a command sees and may use."""

    level: Level = "namespaces"
    mounts: tuple[Mount, ...] = ()
    """An inner folder overrides an outer one."""
    held: tuple[tuple[str, bool], ...] = ()
    """Paths inside of writable mounts that cannot be moved, outer ones first, and whether each can
    be written (`git_guard.held`)."""
    readable: tuple[Path, ...] = ()
    """Paths of the machine that a person lets every command read. The home is hidden in them."""
    hidden: tuple[Path, ...] = ()
    """Files and folders inside of mounts that appear empty."""
    masked: tuple[Path, ...] = ()
    """The home and the database: hidden even if they lie below a path of the system."""
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    """Symbolic links in the command's root folder: path to target."""
    network: NetworkKind = "none"
    unix: bool = True
    """Whether it may create Unix sockets. A folder of a person may hold sockets of other programs,
    and the machine's network has abstract ones."""
    user: int = 0
    """The number of the spare user as whom it runs; 0: the runtime's own user."""
    address_mib: int = 0
    """Addresses that each process may reserve; 0: by the limit of its memory. A browser reserves
    terabytes and uses little of them."""


def database_files(url: str) -> tuple[Path, ...]:
    """Return the files of an SQLite database; none for PostgreSQL."""
    if not url.startswith("sqlite:///"):
        return ()
    path = Path(url.removeprefix("sqlite:///")).expanduser().resolve()
    return tuple(path.with_name(path.name + end) for end in ("", "-wal", "-shm", "-journal"))


def spare_user(team_id: TeamId) -> int:
    """Return the number of the user as whom root runs the commands of a team."""
    return FIRST_SPARE_USER + zlib.crc32(team_id.encode()) % SPARE_USERS


def home_folder(node: Path, *, level: Level, scratch_only: bool) -> Path:
    """Return the folder that is HOME for a command of this node; it is created if needed."""
    if not scratch_only and level != "landlock":
        return node
    (node / OWN_HOME).mkdir(mode=0o700, exist_ok=True)
    return node / OWN_HOME


class Seen(TypedDict, total=False):
    """What a command sees besides the team's folder, and what of that it does not see."""

    refs: Iterable[str]
    outputs: Iterable[Path]
    """Files of earlier commands."""
    folders: Iterable[GivenFolder]
    guards: Mapping[str, Guard] | None
    """What it may not change of the folders, by their names: a folder without one can only be
    read."""
    skills: Iterable[Skill]
    hidden: Iterable[str]
    """Paths in the team's folder that it may read otherwise."""


def spec_of(
    home: Home,
    scope: Scope,
    *,
    level: Level,
    has_spare_user: bool = False,
    masked: Iterable[Path] = (),
    readable: Iterable[Path] = (),
    scratch_only: bool = False,
    network: NetworkKind = "none",
    **seen: Unpack[Seen],
) -> Spec:
    """Return what a command of this scope's node sees. With `scratch_only` it may write to its
    scratch folder and its home folder, and to nothing else of its node."""
    root = home.path.resolve()
    team = root / "teams" / scope.team.id
    node = team / "nodes" / scope.node
    covered = [team / path for path in seen.get("hidden", ())]
    # Landlock cannot take a path out of a folder that it allows.
    is_narrow = len(covered) > (0 if level == "landlock" else MOST_HIDDEN)
    shown = _readable(team, scope, seen.get("refs", ()), covered, is_narrow=is_narrow)
    # Spec, references and results are read-only inside of the writable folder: a command must not
    # change what it was asked to do, nor what was published.
    own = [node] if scratch_only else [node / name for name in (SPEC, REFS, PUBLISHED)]
    writable = [node / SCRATCH, node / OWN_HOME] if scratch_only or level == "landlock" else [node]
    given = [root / path.relative_to(home.path) for path in seen.get("outputs", ())]
    mounts = [Mount(source=path, target=path) for path in (*shown, *own, *given)]
    mounts += [Mount(source=path, target=path, is_writable=True) for path in writable]
    added = tuple(seen.get("folders", ()))
    shared, held = of_folders(added, seen.get("guards") or {}, level)
    mounts += shared
    known = {f"{SKILLS}/{skill.name}": skill.path for skill in seen.get("skills", ())}
    mounts += [Mount(source=path, target=path) for path in known.values()]
    return Spec(
        level=level,
        mounts=tuple(mounts),
        held=held,
        readable=tuple(readable),
        hidden=() if is_narrow else tuple(covered),
        masked=(root, *masked),
        links=_links(home.path, root, added) | {at: str(path) for at, path in known.items()},
        network=network,
        unix=network != "open" and not added,
        user=spare_user(scope.team.id) if has_spare_user else 0,
    )


def of_folders(
    folders: Iterable[GivenFolder], guards: Mapping[str, Guard], level: Level
) -> tuple[list[Mount], tuple[tuple[str, bool], ...]]:
    """Return how given folders are mounted, and what of them is held (`Spec.held`). A folder can be
    changed only if a guard says what of it cannot."""
    mounts: list[Mount] = []
    held: list[tuple[str, bool]] = []
    for one in folders:
        guard = guards.get(one.name)
        is_writable = one.is_writable and guard is not None and not guard.is_whole
        # At its own path: programs store such paths in files. There is also a link to it.
        path = Path(one.path)
        mounts.append(Mount(source=path, target=path, is_writable=is_writable))
        if is_writable and guard is not None:
            held += git_guard.held(one.path, guard.frozen_at(level))
    return mounts, tuple(held)


def _links(home: Path, root: Path, folders: Iterable[GivenFolder]) -> dict[str, str]:
    """Return links to the given folders, and to the home if people reach it through a link."""
    links = {f"{FOLDERS}/{folder.name}": folder.path for folder in folders}
    return links if home == root else links | {str(home): str(root)}


def _readable(
    team: Path, scope: Scope, refs: Iterable[str], covered: Sequence[Path], *, is_narrow: bool
) -> list[Path]:
    """Return the paths outside of the own node that its agent may read.

    A narrow view shows other nodes one by one, without those that are covered, and no notes.
    """
    notes = {
        Area.SOUL: ("SOUL.md", "GOAL.md"),
        Area.PLAN: ("PLAN.md",),
        Area.TEAM_MEMORY: ("MEMORY.md", "memory"),
        Area.OWN_DESK: (f"agents/{scope.agent}",),
    }
    readable = [
        team / name for place, names in notes.items() if scope.reads(place) for name in names
    ]
    if scope.reads(Area.UPLOADS) and (team / UPLOADS).is_dir():
        readable.append(team / UPLOADS)
    if scope.reads(Area.OTHER_NODE) and not is_narrow:
        readable.append(team / "nodes")
    elif scope.reads(Area.PUBLISHED):
        readable += _published(team / "nodes", refs, without=covered)
    if is_narrow:
        readable = [path for path in readable if path.parent.parent == team / "nodes"]
    if scope.reviewed is not None:
        readable.append(team / "nodes" / scope.reviewed)
    return readable


def _published(nodes: Path, refs: Iterable[str], *, without: Sequence[Path]) -> list[Path]:
    left_out = {path.name for path in without if path.parent == nodes}
    referred = {name for ref in refs for name in ref.split("/")[1:2]}
    # Ids begin with their time, so the newest nodes come first. Every folder shown is a mount,
    # which takes time at the start of each command.
    names = sorted({entry.name for entry in nodes.iterdir()} - left_out, reverse=True)
    found = [nodes / name / PUBLISHED for name in sorted(names, key=lambda n: n not in referred)]
    return [path for path in found if path.is_dir()][:MOST_PUBLISHED]


def with_temporary_folder(
    spec: Spec | None, env: Mapping[str, str], spool: Path
) -> tuple[Spec | None, Mapping[str, str]]:
    """Return spec and environment with a folder for temporary files that the command can use."""
    if spec is None:
        return spec, env
    if spec.level != "landlock":
        return spec, {**env, "TMPDIR": "/tmp"}
    folder = spool.absolute() / TEMPORARY
    folder.mkdir(mode=0o700, exist_ok=True)
    given = Mount(source=folder, target=folder, is_writable=True)
    # Git stops if there is an /etc/gitconfig that it may not read.
    own = {"TMPDIR": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    return replace(spec, mounts=(*spec.mounts, given)), {**env, **own}


def encode(
    spec: Spec | None,
    limits: Limits,
    *,
    has_pipes: bool = False,
    groups: Sequence[str] = (),
    events: str = "",
) -> str:
    """Encode spec and limits for the supervisor's command line.

    `has_pipes`: the supervisor gets the command's standard input and output as pipes. `groups` and
    `events` are files of the command's control groups (`cgroups.Placement`).
    """
    limits = limits.for_machine()
    seen = None if spec is None else _as_plain(spec, limits)
    # marshal is built into the interpreter, while `json` takes long to import. The supervisor runs
    # on the same interpreter, so the format always matches.
    order = {"limits": asdict(limits), "spec": seen, "has_pipes": has_pipes}
    return marshal.dumps(order | {"groups": list(groups), "events": events}).hex()


def _as_plain(spec: Spec, limits: Limits) -> dict[str, Any]:
    system = list(_system(is_open=spec.network == "open"))
    readable = [str(path) for path in spec.readable]
    if spec.level == "landlock":  # nothing can be hidden inside of a folder that it allows
        system = [s for s in system if not any(m.is_relative_to(s) for m in spec.masked)]
        readable = [r for r in readable if not any(m.is_relative_to(r) for m in spec.masked)]
    given = [Mount(source=path, target=path) for path in python_folders()]
    mounts = [_as_plain_mount(mount) for mount in (*given, *spec.mounts)]
    if spec.level != "namespaces":
        system += [name for name in NAMES if name not in system]
    plain: dict[str, Any] = {
        "level": spec.level,
        "system": system,
        "mounts": mounts,
        "held": list(spec.held),
        "readable": readable,
        "hidden": [str(path) for path in spec.hidden],
        "masked": [str(path) for path in spec.masked],
        "links": dict(spec.links),
        "files": names_of_user(spec.user or os.geteuid()),
        "network": spec.network,
        "filter": seccomp.program(
            unix=spec.unix and spec.level != "landlock",
            alone=spec.level == "landlock",
            network=spec.network == "open",
        ),
        "uid": spec.user,
        "pids": limits.processes * THREADS_PER_PROCESS,
        "address_mib": spec.address_mib
        or max(limits.memory_mib * ADDRESS_FACTOR, LEAST_ADDRESS_MIB),
        "tmp_mib": TMP_MIB,
    }
    if spec.level == "bubblewrap":
        plain["bubblewrap"] = bubblewrap.arguments(plain)
    return plain


def _as_plain_mount(mount: Mount) -> tuple[str, str, bool]:
    source = str(mount.source)
    # The same text object is written once.
    return source, source if mount.target == mount.source else str(mount.target), mount.is_writable


@cache
def _system(*, is_open: bool) -> tuple[str, ...]:
    """Return the paths of the machine that are mounted; links of the root folder are made anew."""
    wanted = [*SYSTEM, *(OF_NETWORK if is_open else ())]
    is_top_link = {path for path in wanted if path.count("/") == 1 and os.path.islink(path)}  # noqa: PTH114
    return tuple(path for path in wanted if path not in is_top_link and os.path.exists(path))  # noqa: PTH110


@cache
def python_folders() -> tuple[Path, ...]:
    """Return the folders of the runtime's Python, which commands may run."""
    folders = (Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix))
    return tuple(
        dict.fromkeys(f for f in folders if not f.is_relative_to("/usr") and f != Path("/"))
    )


@cache
def names_of_user(number: int) -> dict[str, str]:
    """Return by path the content of the files that tell a command its user and its machine."""
    return {
        "/etc/passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        + (f"agent:x:{number}:{number}:agent:/tmp:/bin/sh\n" if number else ""),
        "/etc/group": "root:x:0:\nnogroup:x:65534:\n" + (f"agent:x:{number}:\n" if number else ""),
        "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    }


@cache
def _spare_mib() -> int:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return int(pages * size * SHARE_OF_MEMORY) // (1024 * 1024)
