"""Channels: messages to people by Telegram, e-mail, webhooks and others, and back."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="channels",
    routers=("agiraph.features.channels.routes:router",),
    settings="agiraph.features.channels.kinds.configured:read",
    settings_tables=("channels",),
    part="agiraph.features.channels.carriers:open_part",
    commands={"channels": "agiraph.features.channels.commands"},
)
