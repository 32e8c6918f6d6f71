"""Attachments: the files that clients send with a message or a goal."""

import base64
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from agiraph.domain.chat import Attachment

MOST_ATTACHMENTS = 10


class AttachmentRequest(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1, max_length=200)
    # The type goes into a data URL and into requests to vendors: no quotes, spaces or line breaks.
    media_type: str = Field(pattern=r"^[a-z]+/[A-Za-z0-9.+-]+$", max_length=100)
    data: str = Field(description="Base64.", max_length=14_000_000)

    @field_validator("data")
    @classmethod
    def _is_base64(cls, data: str) -> str:
        try:
            base64.b64decode(data, validate=True)
        except ValueError as error:
            raise ValueError(f"is not base64: {error}") from error
        return data


Attachments = Annotated[list[AttachmentRequest], Field(max_length=MOST_ATTACHMENTS)]


def received(attachments: Sequence[AttachmentRequest]) -> tuple[Attachment, ...]:
    """Return the files of a request as `Attachment` values, which verbs take."""
    return tuple(Attachment(**one.model_dump()) for one in attachments)
