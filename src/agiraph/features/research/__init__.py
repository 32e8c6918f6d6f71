"""Research: questions answered from pages that readers open, with a ledger of quotations."""

from agiraph.domain.features import Feature

_PARTS = ("research", "reader", "gaps", "writing", "support")

FEATURE = Feature(
    name="research",
    kinds=(*_PARTS, *(f"labelled_{part}" for part in _PARTS)),
    kinds_at="agiraph.domain.research_kinds:KINDS",
    tools="agiraph.tools.research:TOOLS",
    reply_tools="agiraph.tools.research:REPLY_TOOLS",
    actions={"research": "agiraph.services.research.standing_questions:ACTION"},
    tables="agiraph.store.evidence:TABLES",
)
