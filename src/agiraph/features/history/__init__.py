"""History: how a team's time was spent, and its board at any moment, from its events."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="history",
    routers=("agiraph.features.history.routes:router",),
)
