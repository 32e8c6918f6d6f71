"""Kept texts: writes a team's text that a person edited; each version has its author."""

import asyncio

from agiraph.api.deps import Api
from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import NotFound
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.home import file_lock, file_versions
from agiraph.core.home.file_lock import to_the_end
from agiraph.core.home.layout import Home, goal_text, soul_text
from agiraph.core.store import teams
from agiraph.core.store.texts import file_labels

AGIRAPH = "agiraph"
"""The author of the soul that a team has if a person wrote none."""


async def prepared(api: Api, team: str) -> Team:
    """Return the team, after creating its files if it has not worked yet.

    An existing GOAL.md is not changed: the next run compares it with the team's goal, and moves
    PLAN.md away if that was written for an earlier goal.
    """
    found = await api.store.read(teams.find, team)
    place = await asyncio.to_thread(api.home.team, found.id)
    with place.folder:
        if not place.folder.exists("GOAL.md"):
            async with file_lock.hold(api.home, found.id):
                await asyncio.to_thread(place.prepare, found)
    return found


async def keep_current(api: Api, team: Team, path: str, *, is_labelled: bool) -> bytes | None:
    """Store a file's present content as a version, and return it; None if there is no file."""
    return await asyncio.to_thread(_keep_current, api.home, team, path, is_labelled=is_labelled)


def _keep_current(home: Home, team: Team, path: str, *, is_labelled: bool) -> bytes | None:
    with home.team(team.id).folder as folder:
        try:
            data = folder.read(path, limit=file_versions.MOST_BYTES)
        except NotFound:
            return None
        author = _author(team, path, data)
        file_versions.keep(folder, path, data, author=author, is_labelled=is_labelled)
        return data


def _author(team: Team, path: str, data: bytes) -> str:
    """Return who wrote a content that has no version yet; empty if that is not known."""
    if path == "GOAL.md" and data == goal_text(team):
        return OWNER
    if path == "SOUL.md" and data == soul_text(team.soul):
        return OWNER if team.soul else AGIRAPH
    return ""


async def write(api: Api, team: Team, path: str, data: bytes, label: Label) -> None:
    """Write a text that a person edited, with its label, and add it to the file's history.

    The caller holds the file lock.
    """
    # A person who corrects one word has not confirmed the rest, so the file keeps its label until
    # it is confirmed. The label is stored first: a crash must not leave the text without it.
    if label:
        await api.store.write_first(file_labels.put, team.id, path, data, label=label)
    await to_the_end(_write, api.home, team, path, data, is_labelled=bool(label))


def _write(home: Home, team: Team, path: str, data: bytes, *, is_labelled: bool) -> None:
    with home.team(team.id).folder as folder:
        folder.write(path, data)
        file_versions.keep(folder, path, data, author=OWNER, is_labelled=is_labelled)
