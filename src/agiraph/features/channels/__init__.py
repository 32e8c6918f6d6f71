"""Channels: messages to people by Telegram, e-mail, webhooks and others, and back."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="channels",
    routers=("agiraph.features.channels.routes:router",),
    commands={"channels": "agiraph.features.channels.commands"},
)
