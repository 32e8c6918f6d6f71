"""MCP views: the MCP servers as the API shows them."""

from typing import Literal

from pydantic import Field

from agiraph.api.views import View
from agiraph.core.domain.tools import Reach


class McpServerView(View):
    """An MCP server whose tools agents may call, and whether a person has confirmed it."""

    name: str
    kind: Literal["stdio", "http", "sse"] = Field(
        description="stdio: a program that agiraph starts. http, sse: an address."
    )
    reached_by: str = Field(description="Its command or address, without secrets.")
    origin: str = Field(description="The file that names it.")
    state: Literal["off", "unknown", "on", "changed", "faulty"] = Field(
        description="off: no person has confirmed it, so it is not started. unknown: it was not "
        "asked for its tools yet. changed: it has changed tools, which are off until a person "
        "confirms them. faulty: it cannot be used."
    )
    summary: str
    teams: list[str] = Field(description="Names or ids of the teams that may use it; empty: all.")
    tools: list[str] = Field(description="The tools that agents may call.")
    is_running: bool = Field(description="Whether it is started, or connected, now.")
    needs_sign_in: bool = Field(description="Whether it answers nobody who has not signed in.")
    problem: str = Field(description="Why its last use failed; empty: it did not.")
    can_remove: bool = Field(description="Whether agiraph.toml names it, so that the API can.")


class McpToolView(View):
    """A tool of an MCP server. Name, description and arguments are the server's own words."""

    name: str
    state: Literal["on", "new", "changed", "gone"]
    touches: Reach = Field(
        description="What a call does outside of the team, as a person declared it."
    )
    description: str
    arguments: str = Field(description="Its JSON schema.")
    old_description: str = Field(description="Of a changed tool: what a person accepted.")
    old_arguments: str


class McpServerDetails(McpServerView):
    """An MCP server with all that a person confirms."""

    reached: list[str] = Field(
        description="Command, variables, address and headers, line by line, without secrets."
    )
    shown_tools: list[McpToolView] = Field(
        description="All tools of the server, those to be confirmed first."
    )
    sha256: str = Field(description="Hash of what is shown here, for the request that confirms it.")
    question: str = Field(description="What the person is asked; empty: nothing waits for them.")


class McpDraftView(View):
    """An MCP server that a person is about to add, with all that they consent to."""

    name: str
    reached: list[str] = Field(
        description="Command, variables, address and headers, line by line, without secrets."
    )
    secrets: list[str] = Field(description="The names of the secrets that it is handed.")
    notes: list[str] = Field(description="What its program reaches and sees.")
    consent: str = Field(description="What it means to go on.")
    question: str = Field(description="What the person is asked.")
    sha256: str = Field(description="Hash of what is shown here, for the request that adds it.")


class McpSignInView(View):
    url: str = Field(
        description="The address to open in a browser on the machine of the server; empty: none."
    )
