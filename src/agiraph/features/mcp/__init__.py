"""MCP client: tools, resources and prompts of MCP servers, for the agents of a team."""
