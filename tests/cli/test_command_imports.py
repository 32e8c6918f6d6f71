"""Imports of commands: those that only talk to a server import none of its modules."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from agiraph import cli
from agiraph.cli import SECTIONS, SHORT_HELP, agiraph, places

SERVER_MODULES = (
    "fastapi", "genai_prices", "prompt_toolkit", "psycopg", "sqlite3", "uvicorn", "agiraph.app",
    "agiraph.config", "agiraph.models", "agiraph.core.runtime", "agiraph.core.services",
    "agiraph.core.store",
    "agiraph.core.tools", "agiraph.web",
)  # fmt: skip
CLIENT_COMMANDS = {
    command: places()[command]
    for section in ("Give work and talk", "Watch", "Control")
    for command in SECTIONS[section]
}


MODULES = sorted({*CLIENT_COMMANDS.values(), places()["channels"]})
LOOK = """
import importlib, json, os, sys, agiraph.cli.progress
for module in sys.argv[1:]:
    if (child := os.fork()) == 0:
        importlib.import_module(module)
        print(json.dumps([module, list(sys.modules)]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
"""Forks for each module, after the import of what they share; that is checked with each of them."""


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    """The names of all modules that are loaded after the import of each command's module."""
    line = [sys.executable, "-c", LOOK, *MODULES]
    told = subprocess.run(line, capture_output=True, check=True, text=True)
    return dict(json.loads(line) for line in told.stdout.splitlines())


@pytest.mark.parametrize("module", MODULES)
def test_a_client_command_imports_no_server_module(
    loaded: dict[str, list[str]], module: str
) -> None:
    assert module in loaded[module]
    assert [
        name
        for name in loaded[module]
        if f"{name}.".startswith(tuple(f"{h}." for h in SERVER_MODULES))
    ] == []


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"_AGIRAPH_COMPLETE": "zsh_complete", "COMP_WORDS": "agiraph", "COMP_CWORD": "1"},
    ],
    ids=["help", "help in ASCII", "completion"],
)
def test_a_list_of_all_commands_imports_none_of_them(variables: dict[str, str]) -> None:
    line = [sys.executable, "-X", "importtime", "-m", "agiraph", "--help"]
    environ = {"PATH": os.environ["PATH"], **variables}
    told = subprocess.run(line, capture_output=True, check=True, text=True, env=environ)
    context = click.Context(agiraph, info_name="agiraph")
    for name in agiraph.list_commands(context):
        command = agiraph.get_command(context, name)
        assert command is not None
        # A short form has no line breaks in it, but the list of commands may.
        assert command.get_short_help_str(limit=SHORT_HELP) in " ".join(told.stdout.split())
    modules = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    assert "agiraph.cli" in modules
    assert modules & {*places().values(), *SERVER_MODULES} == set()


def test_a_list_of_all_commands_needs_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = click.Context(agiraph, info_name="agiraph")
    shown = agiraph.get_help(context)
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "archive.zip" / "__init__.pyc"))
    cli._docstrings.cache_clear()
    assert agiraph.get_help(context) == shown
