"""The SDK takes a second to import: no process of agiraph loads it before a server is used."""

import subprocess
import sys

import pytest

LOOK = """
import sys, agiraph.serving, agiraph.cli.doctor, agiraph.features.mcp.commands, agiraph.cli.run
print([name for name in ("mcp", "mcp_types", "httpx2", "jsonschema") if name in sys.modules])
"""


@pytest.mark.slow
def test_neither_the_server_nor_a_command_imports_the_sdk_at_its_start() -> None:
    told = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
