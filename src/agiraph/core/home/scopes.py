"""Scopes: which role may read and write which area of a team's folder."""

from enum import StrEnum
from typing import Literal

from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.errors import OutOfScope
from agiraph.core.domain.ids import NodeId
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import UPLOADS, TeamFolder
from agiraph.core.home.safe_folder import Folder, split
from agiraph.sandbox.folders import git_guard, given_folders

Want = Literal["r", "w"]


class Area(StrEnum):
    """A part of a team's folder to which one access rule applies."""

    OWN_SPEC = "own_spec"  # _spec.md and _refs.json of the agent's own node
    OWN_SCRATCH = "own_scratch"
    OWN_PUBLISHED = "own_published"
    PUBLISHED = "published"  # of any other node
    REVIEWED = "reviewed"  # of the node whose result is reviewed
    OTHER_NODE = "other_node"  # anything else of other nodes
    OWN_DESK = "own_desk"
    OTHER_DESK = "other_desk"
    SOUL = "soul"  # SOUL.md and GOAL.md
    PLAN = "plan"
    TEAM_MEMORY = "team_memory"  # MEMORY.md and memory/
    UPLOADS = "uploads"  # files that a person uploaded for the team
    GIVEN_TO_READ = "given_to_read"  # a folder of a person that the team may read
    GIVEN_TO_CHANGE = "given_to_change"  # one that it may also change
    UNKNOWN = "unknown"


P = Area
ACCESS: dict[str, dict[Area, str]] = {
    "coordinator": {
        P.OWN_SPEC: "r",
        P.OWN_SCRATCH: "rw",
        P.OWN_PUBLISHED: "r",
        P.PUBLISHED: "r",
        P.REVIEWED: "r",
        P.OTHER_NODE: "r",
        P.OWN_DESK: "rw",
        P.OTHER_DESK: "",
        P.SOUL: "r",
        P.PLAN: "rw",
        P.TEAM_MEMORY: "rw",
        P.UPLOADS: "r",
        P.GIVEN_TO_READ: "r",
        P.GIVEN_TO_CHANGE: "rw",
        P.UNKNOWN: "",
    },
    "worker": {
        P.OWN_SPEC: "r",
        P.OWN_SCRATCH: "rw",
        P.OWN_PUBLISHED: "r",
        P.PUBLISHED: "r",
        P.REVIEWED: "r",
        P.OTHER_NODE: "",
        P.OWN_DESK: "rw",
        P.OTHER_DESK: "",
        P.SOUL: "r",
        P.PLAN: "r",
        P.TEAM_MEMORY: "",
        P.UPLOADS: "r",
        P.GIVEN_TO_READ: "r",
        P.GIVEN_TO_CHANGE: "rw",
        P.UNKNOWN: "",
    },
}
"""Access by role; any other role has the access of a worker."""
PUBLIC: dict[Area, str] = {area: "" for area in Area} | {P.OWN_SPEC: "r", P.OWN_SCRATCH: "rw"}
"""Access of a public reader, whatever its role: the task and the scratch folder of its node."""

_WORDS: dict[Area, str] = {
    P.OWN_SCRATCH: "scratch/…",
    P.OWN_DESK: "agents/{agent}/…",
    P.PLAN: "PLAN.md",
    P.TEAM_MEMORY: "MEMORY.md, memory/…",
    P.OWN_SPEC: "_spec.md, _refs.json",
    P.OWN_PUBLISHED: "published/…",
    P.PUBLISHED: "nodes/<node>/published/…",
    P.OTHER_NODE: "nodes/<node>/…",
    P.SOUL: "SOUL.md, GOAL.md",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedPath:
    """A path that a model gave, split for safe access.

    The area decides who may read and write. The folder is ours and is opened by name; the rest
    comes from the model and is opened below that folder, so that no link can lead out of it.
    """

    area: Area
    folder: str = ""
    rest: tuple[str, ...] = ()
    given: GivenFolder | None = None
    """The folder of a person that `folder` names; None: it is in the team's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The files that one agent may access while it works on one node."""

    role: str
    agent: str
    node: NodeId
    team: TeamFolder
    reviewed: NodeId | None = None
    """The node whose result is reviewed: all its files can be read."""
    sees_team: bool = True
    """Whether anything of the team's may be read."""
    given: tuple[GivenFolder, ...] = ()
    """Folders of a person that the team was given."""

    def resolve(self, path: str, want: Want) -> tuple[Folder, str]:
        """Return the open folder, which the caller closes, and the rest of the path below it."""
        found = self.locate(path)
        if want not in self._access[found.area]:
            raise OutOfScope(self._refusal(path, want))
        if found.given is not None:
            return self._open_given(found, found.given, path, want)
        folder = self.team.folder.sub(found.folder, create=want == "w")
        return folder, "/".join(found.rest)

    def _open_given(
        self, found: ScopedPath, given: GivenFolder, path: str, want: Want
    ) -> tuple[Folder, str]:
        # Hooks and settings of a repository run programs outside of any sandbox, as the person.
        if want == "w" and git_guard.belongs_to_git(given.path, found.rest):
            raise OutOfScope(
                f"{path[:200]!r} belongs to git, which would run it as the human; ask the human to "
                "change it. To commit, call git_commit."
            )
        return given_folders.open_folder(given), "/".join(found.rest)

    def locate(self, path: str) -> ScopedPath:
        """Return the area of a path. Names are compared exactly; others are scratch files."""
        match names := split(self._relative(path)):
            case ("folders", name, *rest) if given := self._given(name):
                area = P.GIVEN_TO_CHANGE if given.is_writable else P.GIVEN_TO_READ
                spot = f"folders/{given.name}"
                return ScopedPath(area=area, folder=spot, rest=tuple(rest), given=given)
            case ("folders", *_) if self.given:
                return ScopedPath(area=P.UNKNOWN)
            case ("nodes", node, *rest) if node == self.node:
                return self._locate_own(tuple(rest))
            case ("nodes", node, *rest) if node == self.reviewed:
                return _scoped(P.REVIEWED, f"nodes/{node}", rest)
            case ("nodes", node, "published", *rest):
                return _scoped(P.PUBLISHED, f"nodes/{node}/published", rest)
            case ("nodes", *rest):
                return _scoped(P.OTHER_NODE, "nodes", rest)
            case ("agents", agent, *rest) if agent == self.agent:
                return _scoped(P.OWN_DESK, f"agents/{agent}", rest)
            case ("agents", *rest):
                return _scoped(P.OTHER_DESK, "agents", rest)
            case ("SOUL.md" | "GOAL.md",):
                return ScopedPath(area=P.SOUL, rest=names)
            case ("PLAN.md",):
                return ScopedPath(area=P.PLAN, rest=names)
            case ("MEMORY.md",):
                return ScopedPath(area=P.TEAM_MEMORY, rest=names)
            case ("memory", *rest):
                return _scoped(P.TEAM_MEMORY, "memory", rest)
            case (top, *rest) if top == UPLOADS:
                return _scoped(P.UPLOADS, UPLOADS, rest)
            # Paths below a file's name, such as PLAN.md/a. They must not become scratch files by
            # the last case.
            case ("SOUL.md" | "GOAL.md" | "PLAN.md" | "MEMORY.md", *_):
                return ScopedPath(area=P.UNKNOWN)
            case ("_spec.md" | "_refs.json" | "scratch" | "published", *_):
                return self._locate_own(names)
            case _:
                # Models often leave "scratch/" out, so an unknown first name is taken for a scratch
                # file.
                return self._locate_own(("scratch", *names))

    def _given(self, name: str) -> GivenFolder | None:
        return next((folder for folder in self.given if folder.name == name), None)

    def _relative(self, path: str) -> str:
        """Return a path as the file tools know it: commands see a given folder at its own path,
        and as /folders/<name>."""
        if self.given and path.startswith("/folders/"):
            return path[1:]
        for folder in self.given:
            if path == folder.path or path.startswith(f"{folder.path}/"):
                return f"folders/{folder.name}{path[len(folder.path) :]}"
        return path

    def _locate_own(self, names: tuple[str, ...]) -> ScopedPath:
        home = f"nodes/{self.node}"
        match names:
            case ("scratch", *rest):
                return _scoped(P.OWN_SCRATCH, f"{home}/scratch", rest)
            case ("published", *rest):
                return _scoped(P.OWN_PUBLISHED, f"{home}/published", rest)
            case () | ("_spec.md" | "_refs.json",):
                return _scoped(P.OWN_SPEC, home, names)
            case _:
                return ScopedPath(area=P.UNKNOWN)

    def reads(self, area: Area) -> bool:
        return "r" in self._access[area]

    @property
    def _access(self) -> dict[Area, str]:
        if not self.sees_team:
            return PUBLIC
        return ACCESS.get(self.role, ACCESS["worker"])

    def _refusal(self, path: str, want: Want) -> str:
        verb = "read" if want == "r" else "write"
        words = _WORDS | {
            area: ", ".join(f"folders/{one.name}/…" for one in self.given if one.access == access)
            for area, access in ((P.GIVEN_TO_READ, "ro"), (P.GIVEN_TO_CHANGE, "rw"))
        }
        granted = [text for area, text in words.items() if text and want in self._access[area]]
        open_to = ", ".join(granted).format(agent=self.agent)
        return f"You may not {verb} {path[:200]!r}. You may {verb} these: {open_to}."


def _scoped(area: Area, folder: str, rest: list[str] | tuple[str, ...]) -> ScopedPath:
    return ScopedPath(area=area, folder=folder, rest=tuple(rest))
