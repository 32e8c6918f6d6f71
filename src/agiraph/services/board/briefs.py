"""Briefs: the parts of a task that is given away, put together into the text that its worker reads.

A worker sees nothing but its task. The parts have names, so that a model that delegates does not
forget one. Models also give the whole brief as one string, a list or an object; each is read.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from agiraph.domain.effort import Effort
from agiraph.domain.fence import one_line
from agiraph.domain.json_text import repaired
from agiraph.domain.value import value

_OBJECTIVE = ("objective", "task", "goal")
"""Names under which models give what is to be achieved."""
EFFORT_WORDS: Mapping[Effort, str] = {
    "none": "a quick answer, without research",
    "low": "a quick look, about 3 to 10 calls",
    "medium": "about 10 to 20 calls",
    "high": "thorough, and checked twice",
    "max": "as thorough as the limits allow",
}
"""What an effort asks of the worker, beside how much its model thinks."""

IN_COMMANDS = "In bash, nodes/<id>/published is ../../<id>/published. Copy what you want to change."


@value
class Brief:
    """What somebody must know to do a task for somebody else."""

    objective: str
    """What to achieve, and what it is for."""
    context: str = ""
    """What is known already."""
    inputs: tuple[str, ...] = ()
    """Files and addresses to read."""
    output: str = ""
    """What to return, and in which form."""
    boundaries: str = ""
    """What to leave alone, and what others do."""
    effort: Effort | None = None

    @property
    def text(self) -> str:
        """The brief as its worker reads it; the objective alone if nothing else is given."""
        parts = [
            self.objective.strip(),
            _part("Context", self.context),
            _part("Inputs", "\n".join(self._inputs)),
            _part("Output", self.output),
            _part("Boundaries", self.boundaries),
            _part("Effort", f"{EFFORT_WORDS[self.effort]}." if self.effort else ""),
        ]
        return "\n\n".join(part for part in parts if part)

    @property
    def _inputs(self) -> list[str]:
        lines = [f"- {one_line(each)}" for each in self.inputs]
        # Commands run in scratch/, from where the path of the file tools leads nowhere.
        published = any(each.strip().startswith("nodes/") for each in self.inputs)
        return [*lines, f"({IN_COMMANDS})"] if published else lines


def _part(name: str, text: str) -> str:
    text = text.strip()
    if not text:
        return ""
    return f"{name}:\n{text}" if text.startswith("- ") else f"{name}: {text}"


def read_task(given: Any) -> Any:
    """Return a task as text, if a model gave it as an object with the parts of a brief."""
    found = given
    if isinstance(given, str) and given.lstrip().startswith("{"):
        found = repaired(given.strip())
    if not isinstance(found, dict):
        return given
    parts = cast(dict[str, Any], found)
    if not (objective := _objective(parts)):
        return given
    inputs = read_list(parts.get("inputs"))
    brief = Brief(
        objective=objective,
        context=_text(parts.get("context")),
        inputs=tuple(map(str, cast(list[Any], inputs))) if isinstance(inputs, list) else (),
        output=_text(parts.get("output")),
        boundaries=_text(parts.get("boundaries")),
    )
    known = {*_OBJECTIVE, "context", "inputs", "output", "boundaries"}
    more = [f"{name}: {_text(said)}" for name, said in parts.items() if name not in known and said]
    return "\n\n".join([brief.text, *more])


def read_text(given: Any) -> Any:
    """Return one part of a brief as text, if a model gave a list or an object."""
    return _text(given) if isinstance(given, (list, dict)) else given


def read_list(given: Any) -> Any:
    """Return the inputs as a list, if a model gave one string: one for each line."""
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith("[") and isinstance(found := repaired(given.strip()), list):
        return cast(list[Any], found)
    return [line.strip().removeprefix("- ") for line in given.splitlines() if line.strip()]


def _objective(parts: Mapping[str, Any]) -> str:
    return next((_text(parts[name]) for name in _OBJECTIVE if parts.get(name)), "")


def _text(given: Any) -> str:
    match given:
        case None:
            return ""
        case str():
            return given
        case list():
            lines = cast(Sequence[Any], given)
            return "\n".join(f"- {_text(each)}" for each in lines)
        case _:
            return orjson.dumps(given, default=str).decode()
