"""Skill tool: reads the instructions that a person has enabled for a kind of work."""

import asyncio
from collections.abc import Collection
from typing import Annotated

from pydantic import Field

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.records.skills import (
    DESCRIPTION_CHARACTERS,
    LISTED_CHARACTERS,
    MOST_BYTES,
    TOP,
    Skill,
)
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.tools import EVERY_ROLE
from agiraph.core.home import front_matter
from agiraph.core.home.safe_folder import Folder
from agiraph.core.run_context import RunContext
from agiraph.core.tools.base import tool
from agiraph.sandbox.sandbox import SKILLS

MOST_NAMED = 50
"""Further files that are named with a skill, and skills that a prompt names."""


@tool(effect="repeatable", counts_as_work=False, always_granted=True, basic_for=EVERY_ROLE)
async def use_skill(
    ctx: RunContext,
    name: str,
    file: Annotated[str | None, Field(description="A further file of the skill")] = None,
) -> Answer:
    """Read a skill: how the human wants a kind of work done. Read it before you begin such work,
    and follow it."""
    skill = next((one for one in ctx.skills if one.name == name.strip()), None)
    if skill is None:
        known = ", ".join(one.name for one in ctx.skills) or "none"
        raise Refused(f"There is no skill {name!r}. Skills: {known}.")
    wanted = (file or TOP).strip()
    text = await asyncio.to_thread(_text, skill, wanted)
    if wanted != TOP:
        return Done(text or "(empty)")
    return Done(f"{text}\n\n{_files(ctx, skill)}".strip())


def _text(skill: Skill, file: str = TOP) -> str:
    """Return the text of a file of a skill; raise `Refused` if it has no such file."""
    if file not in (TOP, *skill.files):
        known = ", ".join(skill.files) or "none"
        raise Refused(f"The skill {skill.name!r} has no file {file!r}. Further files: {known}.")
    with Folder.open(skill.path) as folder:
        data = folder.read(file, limit=MOST_BYTES)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Refused(
            f"{file!r} of the skill {skill.name!r} is not text; use it in a command."
        ) from None
    return front_matter.split(text)[1] if file == TOP else text


def _files(ctx: RunContext, skill: Skill) -> str:
    """Return the line that names the further files of a skill."""
    if not skill.files:
        return ""
    named = ", ".join(one_line(file) for file in skill.files[:MOST_NAMED])
    more = len(skill.files) - MOST_NAMED
    named += f" and {more} more" if more > 0 else ""
    return (
        f"(Further files: {named}. use_skill(name={skill.name!r}, file=…) shows one. Commands "
        f"find them in {_place(ctx, skill)}, where nothing can be written.)"
    )


def _place(ctx: RunContext, skill: Skill) -> str:
    """Return where a command of this node sees the skill's files."""
    confinement = ctx.command_rules.confinement
    if confinement.is_confined and confinement.level != "landlock":
        return f"{SKILLS}/{skill.name}"
    return str(skill.path)


def section(skills: tuple[Skill, ...], tools: Collection[str]) -> str:
    """Return the section of a prompt that lists the skills, by name and description, for an agent
    with these tools."""
    listed: list[str] = []
    for skill in skills:
        line = f"- {skill.name}: {_short(skill.description)}"
        if len("\n".join([*listed, line])) > LISTED_CHARACTERS:
            break
        listed.append(line)
    if more := [skill.name for skill in skills[len(listed) :]]:
        listed.append(f"- also: {', '.join(more[:MOST_NAMED])}")
    title = f"# Skills (before you do such work, read one with `{use_skill.name}`)"
    return "\n".join([title, "", *listed]) if skills and use_skill.name in tools else ""


def names(skills: tuple[Skill, ...], tools: Collection[str]) -> str:
    """Return the skills for a small window: names alone."""
    if not skills or use_skill.name not in tools:
        return ""
    return f"Skills, by `{use_skill.name}`: {', '.join(one.name for one in skills[:MOST_NAMED])}."


def _short(description: str) -> str:
    text = one_line(description)
    if len(text) <= DESCRIPTION_CHARACTERS:
        return text
    return text[: DESCRIPTION_CHARACTERS - 1].rstrip() + "…"
