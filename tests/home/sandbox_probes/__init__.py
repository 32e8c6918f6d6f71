"""Sandbox probes: attacks that a confined command tries on live targets outside."""
