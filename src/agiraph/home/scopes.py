"""Scopes: one table of who may read and write what, and the paths by which models name it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from agiraph.domain.errors import OutOfScope
from agiraph.domain.ids import NodeId
from agiraph.home.layout import TeamFolder
from agiraph.home.safe_folder import Folder
from agiraph.home.safe_open import split

Want = Literal["r", "w"]


class Place(StrEnum):
    OWN_SPEC = "own_spec"  # _spec.md and _refs.json of the agent's own node
    OWN_SCRATCH = "own_scratch"
    OWN_PUBLISHED = "own_published"
    PUBLISHED = "published"  # of any other node
    OTHER_NODE = "other_node"  # anything else of other nodes
    OWN_DESK = "own_desk"
    OTHER_DESK = "other_desk"
    SOUL = "soul"  # SOUL.md and GOAL.md
    PLAN = "plan"
    TEAM_MEMORY = "team_memory"  # MEMORY.md and memory/
    UNKNOWN = "unknown"


P = Place
ACCESS: dict[str, dict[Place, str]] = {
    "coordinator": {
        P.OWN_SPEC: "r",
        P.OWN_SCRATCH: "rw",
        P.OWN_PUBLISHED: "r",
        P.PUBLISHED: "r",
        P.OTHER_NODE: "r",
        P.OWN_DESK: "rw",
        P.OTHER_DESK: "",
        P.SOUL: "r",
        P.PLAN: "rw",
        P.TEAM_MEMORY: "rw",
        P.UNKNOWN: "",
    },
    "worker": {
        P.OWN_SPEC: "r",
        P.OWN_SCRATCH: "rw",
        P.OWN_PUBLISHED: "r",
        P.PUBLISHED: "r",
        P.OTHER_NODE: "",
        P.OWN_DESK: "rw",
        P.OTHER_DESK: "",
        P.SOUL: "r",
        P.PLAN: "r",
        P.TEAM_MEMORY: "",
        P.UNKNOWN: "",
    },
}
"""A role that is not named here has the access of a worker."""

_WORDS: dict[Place, str] = {
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
class Spot:
    """Where a path leads: a place, the folder it is opened beneath, and the rest of the way."""

    place: Place
    folder: str = ""
    rest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one agent at work on one node may touch."""

    role: str
    agent: str
    node: NodeId
    team: TeamFolder

    def resolve(self, path: str, want: Want) -> tuple[Folder, str]:
        """A folder of the caller's, to be closed, and what is left of the path beneath it."""
        spot = self.locate(path)
        if want not in self._access[spot.place]:
            raise OutOfScope(self._refusal(path, want))
        folder = self.team.folder.sub(spot.folder, create=want == "w")
        return folder, "/".join(spot.rest)

    def locate(self, path: str) -> Spot:
        """Names are compared byte for byte: what merely looks like a place is a scratch file."""
        match names := split(path):
            case ("nodes", node, *rest) if node == self.node:
                return self._locate_own(tuple(rest))
            case ("nodes", node, "published", *rest):
                return _spot(P.PUBLISHED, f"nodes/{node}/published", rest)
            case ("nodes", *rest):
                return _spot(P.OTHER_NODE, "nodes", rest)
            case ("agents", agent, *rest) if agent == self.agent:
                return _spot(P.OWN_DESK, f"agents/{agent}", rest)
            case ("agents", *rest):
                return _spot(P.OTHER_DESK, "agents", rest)
            case ("SOUL.md" | "GOAL.md",):
                return Spot(place=P.SOUL, rest=names)
            case ("PLAN.md",):
                return Spot(place=P.PLAN, rest=names)
            case ("MEMORY.md",):
                return Spot(place=P.TEAM_MEMORY, rest=names)
            case ("memory", *rest):
                return _spot(P.TEAM_MEMORY, "memory", rest)
            case ("SOUL.md" | "GOAL.md" | "PLAN.md" | "MEMORY.md", *_):
                return Spot(place=P.UNKNOWN)
            case ("_spec.md" | "_refs.json" | "scratch" | "published", *_):
                return self._locate_own(names)
            case _:
                return self._locate_own(("scratch", *names))

    def _locate_own(self, names: tuple[str, ...]) -> Spot:
        home = f"nodes/{self.node}"
        match names:
            case ("scratch", *rest):
                return _spot(P.OWN_SCRATCH, f"{home}/scratch", rest)
            case ("published", *rest):
                return _spot(P.OWN_PUBLISHED, f"{home}/published", rest)
            case () | ("_spec.md" | "_refs.json",):
                return _spot(P.OWN_SPEC, home, names)
            case _:
                return Spot(place=P.UNKNOWN)

    def reads(self, place: Place) -> bool:
        return "r" in self._access[place]

    @property
    def _access(self) -> dict[Place, str]:
        return ACCESS.get(self.role, ACCESS["worker"])

    def _refusal(self, path: str, want: Want) -> str:
        verb = "read" if want == "r" else "write"
        granted = [words for place, words in _WORDS.items() if want in self._access[place]]
        open_to = ", ".join(granted).format(agent=self.agent)
        return f"You may not {verb} {path[:200]!r}. You may {verb} these: {open_to}."


def _spot(place: Place, folder: str, rest: list[str] | tuple[str, ...]) -> Spot:
    return Spot(place=place, folder=folder, rest=tuple(rest))
