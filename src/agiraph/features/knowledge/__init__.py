"""Knowledge: what agents remember of a person and learn from their work, and their notes."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="knowledge",
    kinds=("reflection",),
    kinds_at="agiraph.features.knowledge.verbs.reflection:KINDS",
    tools="agiraph.features.knowledge.tools:TOOLS",
    reply_tools="agiraph.features.knowledge.reply_tools:TOOLS",
    verbs="agiraph.features.knowledge.verbs.moments:MOMENTS",
    teller="agiraph.features.knowledge.opening:TELLER",
    sets_aside="agiraph.features.knowledge.note_writes:set_aside",
    refreshes="agiraph.features.knowledge.note_writes:refresh_notes",
    routers=(
        "agiraph.features.knowledge.routes:router",
        "agiraph.features.knowledge.routes:search_router",
    ),
    serves_commands=True,
    tables="agiraph.features.knowledge.rows:TABLES",
)
