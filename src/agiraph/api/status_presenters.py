"""Status presenters: how commands are confined, as a view of the API."""

from agiraph.api.status_views import SandboxView
from agiraph.home.levels import Confinement


def sandbox_view(found: Confinement) -> SandboxView:
    """Return the level at which commands are confined, and what it does not enforce."""
    return SandboxView(
        level=found.level,
        is_named=found.is_named,
        has_spare_user=found.has_spare_user,
        description=found.describe(),
        not_held=list(found.not_held),
        reasons=list(found.reasons),
        limited_by=found.limited_by,
    )
