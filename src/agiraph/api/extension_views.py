"""Extension views: a person's own code and skills as the API shows them, and the requests that
enable and disable them."""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.view import View

State = Literal["off", "on", "changed", "faulty"]


class EnableRequest(BaseModel):
    """Names the extension, and the content that the person has seen."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"id": "tools/weather.py", "sha256": "0" * 64}},
    )

    id: str = Field(min_length=1, max_length=400)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class DisableRequest(BaseModel):
    """Names the extension."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"id": "tools/weather.py"}}
    )

    id: str = Field(min_length=1, max_length=400)


class OfferView(View):
    """A tool, engine, channel or provider that an extension declares."""

    name: str
    touches: str = Field(description="Of a tool: nothing, reads, changes or sends.")
    effect: str = Field(description="Of a tool: repeatable or once.")
    secrets: list[str]


class ExtensionView(View):
    """A file or package of a person, and whether it is used."""

    id: str
    kind: Literal["tools", "engines", "channels", "providers"]
    source: Literal["file", "package"]
    sha256: str
    state: State = Field(
        description="off: nobody has enabled it. changed: it has other content than a person "
        "enabled, so it is off. faulty: enabled, but it cannot be used."
    )
    summary: str
    problem: str
    enabled_at: datetime | None
    offers: list[OfferView]


class SkillView(View):
    """A folder with a SKILL.md, and whether agents are offered it."""

    id: str
    name: str
    description: str
    sha256: str
    state: State
    summary: str
    problem: str
    enabled_at: datetime | None
