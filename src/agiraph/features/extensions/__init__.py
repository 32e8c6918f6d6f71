"""Extensions: tools, engines, channels, providers and skills of a person."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="extensions",
    routers=("agiraph.features.extensions.routes:router",),
    commands=dict.fromkeys(("tools", "skills"), "agiraph.features.extensions.commands"),
)
