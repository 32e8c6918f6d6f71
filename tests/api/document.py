"""Document: the schema of the API, made once for all tests of a process."""

from typing import Any

from agiraph.api import schema


def document() -> dict[str, Any]:
    """Return the schema. Nobody may change it."""
    return schema.document()
