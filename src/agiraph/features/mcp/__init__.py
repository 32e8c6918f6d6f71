"""MCP: servers whose tools teams use, and agiraph as a server for MCP clients."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="mcp",
    routers=("agiraph.features.mcp.routes:router",),
    commands={"mcp": "agiraph.features.mcp.commands"},
)
