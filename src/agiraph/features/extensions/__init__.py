"""Extensions: tools, engines, channels, providers and skills of a person."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="extensions",
    routers=("agiraph.features.extensions.routes:router",),
    settings="agiraph.features.extensions.configured:read",
    settings_tables=("tools",),
    part="agiraph.features.extensions.loading:open_part",
    checks="agiraph.features.extensions.commands:check",
    forgets_below="agiraph.features.extensions.skills:forget_below",
    commands=dict.fromkeys(("tools", "skills"), "agiraph.features.extensions.commands"),
)
