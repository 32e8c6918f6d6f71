"""Sharing: links by which others read one report without signing in."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="sharing",
    routers=(
        "agiraph.features.sharing.routes:router",
        "agiraph.features.sharing.routes:pages",
    ),
    open_pages=("/shared/",),
    tables="agiraph.features.sharing.rows:TABLES",
)
