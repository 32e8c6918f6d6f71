"""Channels: messages to people by Telegram, e-mail, webhooks and others, and back."""
