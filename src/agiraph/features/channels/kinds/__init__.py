"""Channels: one module for each kind."""
