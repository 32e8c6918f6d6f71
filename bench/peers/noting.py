"""Noting: the tool that the agents of each runtime call, and its record of the CPU time."""

import time

MODEL = "gpt-4.1"
RESULT = "noted: " + "y" * 200
stamps: list[float] = []
"""The CPU time of this process at each call of the tool."""


def noted() -> str:
    """What the tool `note` of each runtime does."""
    stamps.append(time.process_time())
    return RESULT
