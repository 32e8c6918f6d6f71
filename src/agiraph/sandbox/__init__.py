"""Sandbox: confined commands, their network gate, and the folders that a person gives a team."""
