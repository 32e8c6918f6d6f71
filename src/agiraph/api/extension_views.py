"""Extension views: own code and skills of a person in API responses, and the requests that enable
and disable them."""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.view import View

State = Literal["off", "on", "changed", "faulty"]


class EnableRequest(BaseModel):
    """Which extension or skill to enable, and the hash of the content that the person saw."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"id": "tools/weather.py", "sha256": "0" * 64}},
    )

    id: str = Field(min_length=1, max_length=400)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class DisableRequest(BaseModel):
    """Which extension or skill to disable."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"id": "tools/weather.py"}}
    )

    id: str = Field(min_length=1, max_length=400)


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
    files: list[FileTextView]
