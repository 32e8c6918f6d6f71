"""Features: one folder each. Without its folder and its name here a feature is not there."""

NAMES = (
    "research",
    "knowledge",
    "reviews",
    "programs",
    "channels",
    "chat_api",
    "mcp",
    "extensions",
    "history",
    "sharing",
    "backup",
)
