"""MCP: servers whose tools teams use, and agiraph as a server for MCP clients."""

from agiraph.core.domain.features import Feature

FEATURE = Feature(
    name="mcp",
    routers=("agiraph.features.mcp.routes:router",),
    settings="agiraph.features.mcp.settings:read",
    settings_tables=("mcp", "mcp_files"),
    part="agiraph.features.mcp.toolbox:open_part",
    checks="agiraph.features.mcp.commands:check",
    commands={"mcp": "agiraph.features.mcp.commands"},
)
