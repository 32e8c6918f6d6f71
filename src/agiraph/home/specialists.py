"""Specialists: files that describe who can be hired; ours, and what a home adds or replaces.

A file has front matter (name, description, tools, model, examples, when_not_to_use) and a body, the
prompt. The agent files of Claude Code load as they are: their tools are known here by other names.
"""

import logging
import re
from importlib.resources import files
from typing import Any, cast

import yaml

from agiraph.domain.errors import Refused
from agiraph.domain.people import Specialist
from agiraph.home.layout import Home

log = logging.getLogger("agiraph.specialists")

LONGEST = 64 * 1024
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_LINE = re.compile(r"([A-Za-z_-]+):[ \t]*(.*)")

_OTHER_NAMES = {
    "Read": ("read_file",),
    "Write": ("write_file",),
    "Edit": ("edit_file",),
    "MultiEdit": ("edit_file",),
    "Bash": ("bash",),
    "Grep": ("bash",),
    "Glob": ("list_files",),
    "LS": ("list_files",),
    "WebSearch": ("web_search",),
    "WebFetch": ("web_fetch",),
    "Task": ("assign_task", "task_output"),
}
"""What others call tools, and which of ours do the same."""


def specialists(home: Home | None = None) -> dict[str, Specialist]:
    """Everyone who can be hired, by name. A file that cannot be read is left out and logged."""
    found: dict[str, Specialist] = {}
    ours = files("agiraph") / "specialists"
    texts = {f.name: f.read_text() for f in ours.iterdir() if f.name.endswith(".md")}
    for source, written in (("agiraph", texts), ("home", {} if home is None else _of_home(home))):
        for name, text in sorted(written.items()):
            try:
                specialist = parse(text, name.removesuffix(".md"))
            except Refused as error:
                log.warning("agents/%s (%s) is left out: %s", name, source, error)
                continue
            found[specialist.name] = specialist
    return dict(sorted(found.items()))


def _of_home(home: Home) -> dict[str, str]:
    if not home.folder.exists("agents"):
        return {}
    with home.folder.sub("agents") as folder:
        names = [e.name for e in folder.list() if e.kind == "file" and e.name.endswith(".md")]
        return {n: folder.read(n, limit=LONGEST).decode(errors="replace") for n in names}


def parse(text: str, file_name: str) -> Specialist:
    """One file, or `Refused` with what is missing."""
    match = _FRONT.match(text)
    if match is None:
        raise Refused("it does not begin with front matter between two lines of ---.")
    about = _front_matter(match[1])
    name = str(about.get("name") or file_name).strip().lower()
    if not _NAME.fullmatch(name):
        raise Refused(f"its name {name!r} is not made of small letters, digits, - and _.")
    description = str(about.get("description") or "").strip()
    if not description:
        raise Refused("it has no description: say when to use it.")
    model = str(about.get("model") or "")
    return Specialist(
        name=name,
        description=description,
        prompt=match[2].strip(),
        tools=_tools(about.get("tools")),
        model=model if "/" in model else "",  # "inherit", "sonnet": the model of whoever hires
        examples=tuple(str(e).strip() for e in _listed(about.get("examples"), by=None)),
        when_not_to_use=_sentence(about.get("when_not_to_use")),
    )


def _front_matter(text: str) -> dict[str, Any]:
    """YAML; or, where a description has colons in it as many have, line by line."""
    try:
        read = yaml.safe_load(text)
        if isinstance(read, dict):
            return cast(dict[str, Any], read)
    except yaml.YAMLError:
        pass
    lines: dict[str, Any] = {}
    key = ""
    for line in text.splitlines():
        if found := _LINE.fullmatch(line):
            key = found[1]
            lines[key] = found[2].replace("\\n", "\n")
        elif key:
            lines[key] += "\n" + line
    return lines


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
