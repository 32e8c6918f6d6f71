"""Programs: agents that are a program of the settings instead of a model."""

from agiraph.domain.features import Feature

FEATURE = Feature(
    name="programs",
    workers={"cli": "agiraph.runtime.command_line:run"},
)
