"""Research: questions answered from pages that readers open, with a ledger of quotations."""

from agiraph.core.domain.features import Feature

_PARTS = ("research", "reader", "gaps", "writing", "support")

FEATURE = Feature(
    name="research",
    kinds=(*_PARTS, *(f"labelled_{part}" for part in _PARTS)),
    kinds_at="agiraph.features.research.model.kinds:KINDS",
    tools="agiraph.features.research.tools:TOOLS",
    reply_tools="agiraph.features.research.tools:REPLY_TOOLS",
    actions={"research": "agiraph.features.research.verbs.standing_questions:ACTION"},
    routers=("agiraph.features.research.routes:router",),
    commands=dict.fromkeys(("research", "evidence"), "agiraph.features.research.commands"),
    tables="agiraph.features.research.rows.evidence:TABLES",
)
