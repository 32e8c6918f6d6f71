"""Extension views: own code and skills of a person, as the API returns them."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from agiraph.api.views import View

State = Literal["off", "on", "changed", "faulty"]


class OfferView(View):
    """A tool, search engine, channel or model provider that an enabled extension adds."""

    name: str
    touches: str = Field(description="Of a tool: nothing, reads, changes or sends.")
    effect: str = Field(description="Of a tool: repeatable or once.")
    secrets: list[str]


class ExtensionView(View):
    """An extension: a Python file in the home, or an installed package. It runs only if enabled."""

    id: str
    kind: Literal["tools", "engines", "channels", "providers"]
    source: Literal["file", "package"]
    sha256: str
    state: State = Field(
        description="off: no person has enabled it. on: it is used. changed: its content is not "
        "what a person enabled, so it is not used. faulty: enabled, but it cannot be loaded."
    )
    summary: str
    problem: str
    enabled_at: datetime | None
    offers: list[OfferView]


class SkillView(View):
    """A skill: a folder with a SKILL.md. Agents may read it only if it is enabled."""

    id: str
    name: str
    description: str
    sha256: str
    state: State
    summary: str
    problem: str
    enabled_at: datetime | None


class FileTextView(View):
    """One file, as it was enabled and as it is now."""

    path: str
    before: str | None = Field(description="None: it was not enabled before, or no copy was kept.")
    now: str | None = Field(description="None: the file is gone.")


class ContentView(View):
    """All that a consent covers, in full."""

    id: str
    sha256: str = Field(description="Send it to enable exactly this content.")
    consent: str = Field(description="What it means to enable it.")
    files: list[FileTextView]


class SkillFile(View):
    """The SKILL.md of a skill, and what agents are told of it."""

    id: str
    text: str
    files: list[str] = Field(description="Its other files.")
    shown: str = Field(description="The line about it in prompts.")
    can_edit: bool = Field(description="Whether it lies in this home, so that it can be changed.")
