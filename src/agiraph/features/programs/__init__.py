"""Programs: agents that are a program of the settings instead of a model."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="programs",
    workers={"cli": "agiraph.features.programs.command_line:run"},
)
