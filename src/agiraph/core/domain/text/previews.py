"""Previews: what a model would be shown, for a person who tries a specialist."""

from agiraph.core.domain.value import value


@value
class PromptText:
    """The first request of a thread, as text for people."""

    system: str
    task: str
    tools: tuple[str, ...]
    """The names of the tools in the request."""
