"""Imports of commands: those that only talk to a server import none of its modules."""

import subprocess
import sys

import pytest

from agiraph.cli import SECTIONS

SERVER_MODULES = (
    "fastapi", "genai_prices", "prompt_toolkit", "psycopg", "sqlite3", "uvicorn", "agiraph.app",
    "agiraph.config", "agiraph.providers", "agiraph.runtime", "agiraph.services", "agiraph.store",
    "agiraph.tools", "agiraph.web",
)  # fmt: skip
CLIENT_COMMANDS = {
    command: module
    for section in ("Give work and talk", "Watch", "Control")
    for command, module in SECTIONS[section].items()
}


@pytest.mark.parametrize("module", sorted({*CLIENT_COMMANDS.values(), "tokens"}))
def test_a_client_command_imports_no_server_module(module: str) -> None:
    look = f"import sys, agiraph.cli.{module}; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, check=True, text=True)
    loaded = told.stdout.split()
    assert f"agiraph.cli.{module}" in loaded
    assert [
        name for name in loaded if f"{name}.".startswith(tuple(f"{h}." for h in SERVER_MODULES))
    ] == []
