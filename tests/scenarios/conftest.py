"""Fixtures of the scenarios: they run with what a user gets."""

import pytest


@pytest.fixture
def easy_endings() -> bool:
    """Scenarios end their work as the product asks for it."""
    return False
