"""Installed servers: real MCP servers from npm and PyPI, kept outside the repository."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenarios.npm_programs import QUICKLY, cache_folder, installation_lock

SECONDS = 100
NPM = (
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-everything@2026.8.31",
)
PYPI = (
    "mcp-server-time==2026.10.19",
    "mcp-server-git==2026.10.19",
    "mcp-server-fetch==2026.10.24",
)


def npm(program: str) -> str:
    """Return the path of a server's program from npm; skip the test if it cannot be installed."""
    return str(_installed("mcp-npm-1", _install_npm) / "node_modules" / ".bin" / program)


def pypi(program: str) -> str:
    """Return the path of a server's program from PyPI; skip the test if it cannot be installed."""
    return str(_installed("mcp-pypi-3", _install_pypi) / "bin" / program)


def _installed(name: str, install: Callable[[Path], None]) -> Path:
    cache = cache_folder()
    folder = cache / name
    if folder.exists():
        return folder
    with installation_lock(cache, name) as waited:
        if folder.exists():
            return folder
        if waited:  # a second attempt would take as long
            pytest.skip("another process tried to install MCP servers and failed")
        made = Path(tempfile.mkdtemp(dir=cache))
        try:
            install(made)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"MCP servers cannot be installed here: {type(error).__name__}")
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return folder


def _run(*words: str | Path) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=SECONDS)


def _install_npm(made: Path) -> None:
    program = shutil.which("npm")
    if program is None:
        pytest.skip("there is no npm to install MCP servers with")
    _run(program, "install", *QUICKLY, "--prefix", made, *NPM)
    made.rename(made.parent / "mcp-npm-1")


def _install_pypi(made: Path) -> None:
    # In its final place from the start: a virtual environment cannot be moved.
    folder = made.parent / "mcp-pypi-3"
    try:
        _run(sys.executable, "-m", "venv", "--without-pip", folder)
        pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
        _run(*pip, "install", "--quiet", *PYPI)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
