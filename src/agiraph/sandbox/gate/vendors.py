"""Vendors: which hosts the command-line agents of vendors reach, and by which variables."""

from collections.abc import Mapping
from pathlib import PurePath

from agiraph.core.domain.text.command_words import executable_of
from agiraph.core.domain.value import dataclass
from agiraph.sandbox.gate.forwarding import below_gate
from agiraph.sandbox.gate.rules import Endpoint, endpoint_of
from agiraph.web.addresses import is_public


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorHosts:
    """The hosts of one command-line agent."""

    hosts: tuple[str, ...]
    """Where it sends its requests, and where it refreshes its sign-in."""
    variables: tuple[str, ...] = ()
    """Variables that name another address for its requests."""


_ANTHROPIC = VendorHosts(
    hosts=("api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"),
    variables=("ANTHROPIC_BASE_URL",),
)
_OPENAI = VendorHosts(
    hosts=("api.openai.com", "chatgpt.com", "auth.openai.com"), variables=("OPENAI_BASE_URL",)
)
_GEMINI = VendorHosts(
    hosts=(
        "generativelanguage.googleapis.com",
        "cloudcode-pa.googleapis.com",
        "oauth2.googleapis.com",
    ),
    variables=("GOOGLE_GEMINI_BASE_URL",),
)
PROGRAMS: Mapping[str, VendorHosts] = {
    "claude": _ANTHROPIC,
    "codex": _OPENAI,
    "gemini": _GEMINI,
    "opencode": VendorHosts(
        hosts=(*_ANTHROPIC.hosts, *_OPENAI.hosts, *_GEMINI.hosts),
        variables=(*_ANTHROPIC.variables, *_OPENAI.variables, *_GEMINI.variables),
    ),
}
"""The presets of programs, by the name of their executable."""


def program_of(command: str) -> str:
    """Return the preset that a command of the settings starts; empty if it starts none.

    Only the first word counts, behind variables that are set for it: a script that starts several
    programs is none of the presets.
    """
    name = PurePath(executable_of(command)).name
    return name if name in PROGRAMS else ""


def reachable(program: str, environ: Mapping[str, str]) -> frozenset[Endpoint]:
    """Return the endpoints that a preset may reach: those that its variables name, else its
    vendor's hosts. None for a program that is not a preset."""
    if (vendor := PROGRAMS.get(program)) is None:
        return frozenset()
    named = {endpoint_of(environ[name]) for name in vendor.variables if environ.get(name)}
    if found := {endpoint for endpoint in named if endpoint is not None}:
        return frozenset(found)
    return frozenset(Endpoint(host, 443) for host in vendor.hosts)


def environment(program: str, environ: Mapping[str, str], port: int) -> dict[str, str]:
    """Return the variables of a preset that name an address which is not public, such as a server
    on loopback: they lead to the gate, which passes requests on."""
    vendor = PROGRAMS.get(program)
    base = f"http://127.0.0.1:{port}"
    found: dict[str, str] = {}
    for name in vendor.variables if vendor is not None else ():
        endpoint = endpoint_of(environ.get(name, ""))
        if endpoint is not None and _is_local(endpoint.host):
            found[name] = below_gate(environ[name], base)
    return found


def _is_local(host: str) -> bool:
    is_address = host.replace(".", "").isdecimal() or ":" in host
    return host == "localhost" or (is_address and not is_public(host))
