"""Package indexes: where this machine gets its packages from.

The settings name them under `[packages]`; what they do not name, pip, npm and cargo are asked for.
No address is built in: pip and npm know their own defaults.
"""

import asyncio
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from agiraph.core.domain.value import dataclass

ASK_S = 20
"""Seconds that pip or npm may take to print its settings."""
_PIP_LINE = re.compile(r"^(:env:|install|global)\.([\w-]+)='(.*)'$", re.MULTILINE)
_PIP_DEFAULT = re.compile(r"--index-url\s+<url>.*?\(default\s+(\S+?)\)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSources:
    """Where pip looks for packages."""

    indexes: tuple[str, ...] = ()
    """Addresses of simple indexes, `file:` among them."""
    links: tuple[str, ...] = ()
    """Folders and pages with links to files (`find-links`)."""


@dataclass(slots=True, kw_only=True)
class PackageIndexes:
    """The indexes of each kind; the machine is asked when a command first needs one."""

    python: PythonSources | None = None
    """None: what pip is configured for."""
    npm: str | None = None
    cargo: str | None = None
    _asked: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)

    async def python_sources(self) -> PythonSources:
        return self.python or await self._ask("python", _ask_pip)

    async def npm_registry(self) -> str:
        """Return the address of the npm registry; empty if there is none."""
        return self.npm or await self._ask("npm", _ask_npm)

    async def cargo_index(self) -> str:
        """Return the address of the sparse index of cargo; empty if none is configured."""
        return self.cargo or await self._ask("cargo", _configured_cargo)

    async def _ask(self, kind: str, ask: Any) -> Any:
        if kind not in self._asked:
            self._asked[kind] = await asyncio.to_thread(ask)
        return self._asked[kind]


def _ask_pip() -> PythonSources:
    for pip in ([sys.executable, "-m", "pip"], ["pip"], ["pip3"]):
        listed = _output([*pip, "config", "list"])
        if listed is None:
            continue
        found = pip_settings(listed)
        default = _PIP_DEFAULT.search(_output([*pip, "install", "--help"]) or "")
        main = found.get("index-url") or ([default[1]] if default else [])
        extra, links = found.get("extra-index-url", []), found.get("find-links", [])
        return PythonSources(indexes=(*main, *extra), links=tuple(links))
    return PythonSources()


def pip_settings(listed: str) -> dict[str, list[str]]:
    """Return the values of `pip config list`; a variable of the environment comes before a file."""
    found: dict[str, list[str]] = {}
    for section in ("global", "install", ":env:"):
        for where, name, value in _PIP_LINE.findall(listed):
            if where == section:
                found[name] = value.replace("\\n", " ").split()
    return found


def _ask_npm() -> str:
    lines = (_output(["npm", "config", "get", "registry"]) or "").split()
    return lines[-1] if lines and lines[-1].startswith("http") else ""


def _configured_cargo(environ: Mapping[str, str] = os.environ) -> str:
    """Return the sparse index by which cargo's settings replace its default one."""
    home = Path(environ.get("CARGO_HOME") or Path.home() / ".cargo")
    try:
        settings = tomllib.loads((home / "config.toml").read_text())
    except (OSError, ValueError):
        return ""
    sources = cast(dict[str, dict[str, str]], settings.get("source", {}))
    name = sources.get("crates-io", {}).get("replace-with", "")
    return sources.get(name, {}).get("registry", "").removeprefix("sparse+")


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=ASK_S, cwd="/"
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
