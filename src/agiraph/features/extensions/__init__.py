"""Extensions: tools, engines, channels, providers and skills of a person."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="extensions",
    routers=("agiraph.features.extensions.routes:router",),
    forgets_below="agiraph.features.extensions.skills:forget_below",
    commands=dict.fromkeys(("tools", "skills"), "agiraph.features.extensions.commands"),
)
