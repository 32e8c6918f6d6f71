"""What commands load: those that ask a server need nothing of what it is made of."""

import subprocess
import sys

import pytest

from agiraph.cli import SECTIONS

HEAVY = (
    "fastapi", "genai_prices", "prompt_toolkit", "psycopg", "sqlite3", "uvicorn", "agiraph.app",
    "agiraph.config", "agiraph.providers", "agiraph.runtime", "agiraph.services", "agiraph.store",
    "agiraph.tools", "agiraph.web",
)  # fmt: skip
ASKING = {
    command: module
    for section in ("Give work and talk", "Watch", "Control")
    for command, module in SECTIONS[section].items()
}


@pytest.mark.parametrize("module", sorted({*ASKING.values(), "tokens"}))
def test_a_command_that_asks_a_server_loads_nothing_of_it(module: str) -> None:
    look = f"import sys, agiraph.cli.{module}; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, check=True, text=True)
    loaded = told.stdout.split()
    assert f"agiraph.cli.{module}" in loaded
    assert [name for name in loaded if f"{name}.".startswith(tuple(f"{h}." for h in HEAVY))] == []
