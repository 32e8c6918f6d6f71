"""Reviews: a reviewer judges a result before it counts."""

from agiraph.domain.features import Feature

FEATURE = Feature(
    name="reviews",
    kinds=("review",),
    kinds_at="agiraph.services.lifecycle.reviews:KINDS",
    tools="agiraph.tools.reviewing:TOOLS",
    judge="agiraph.tools.reviewing:submit",
)
