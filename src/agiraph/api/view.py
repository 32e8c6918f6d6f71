"""View: the base of what clients get from the API."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class View(BaseModel):
    # Deferred: a command uses one or two of the views, and building all of them would slow its
    # start. Fields have no docstrings either: pydantic would parse this file once per class.
    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=True)
