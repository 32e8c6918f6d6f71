"""Surroundings: the checks of search, packages, own tools and MCP servers."""

from agiraph.doctor import extension_checks, mcp_checks, package_checks, search_checks
from agiraph.doctor.checkup import Checkup


async def check(checkup: Checkup) -> None:
    """Check what agents use besides models. Without `online`, only the home is looked at."""
    await search_checks.check(checkup)
    await package_checks.check(checkup)
    await extension_checks.check(checkup)
    await mcp_checks.check(checkup)
