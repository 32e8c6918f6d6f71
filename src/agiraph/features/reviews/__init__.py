"""Reviews: a reviewer judges a result before it counts."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="reviews",
    kinds=("review",),
    kinds_at="agiraph.features.reviews.verbs:KINDS",
    tools="agiraph.features.reviews.tools:TOOLS",
    judge="agiraph.features.reviews.tools:submit",
)
