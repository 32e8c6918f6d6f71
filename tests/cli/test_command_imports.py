"""Imports of commands: those that only talk to a server import none of its modules."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
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
USED_LATER = (
    "aiohttp", "asyncpg", "fastapi", "genai_prices", "html_to_markdown", "httpx", "httpx2",
    "pgqueuer", "prompt_toolkit", "psycopg", "pypdfium2", "xml", "yaml", "agiraph.api.schema",
    "agiraph.api.event_models", "agiraph.features.channels.inlet", "agiraph.features.mcp.transport",
    "agiraph.testing", "agiraph.web.markdown", "agiraph.web.pinned",
)  # fmt: skip
"""What neither a server nor a run needs before its first request, page or price."""
MOST_MODULES = {"agiraph.cli.teams": 410, "agiraph.cli.run": 825, "agiraph.cli.up": 935}
"""A bound, so that nothing makes every start slower unseen: import what few processes use where
they use it."""
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
    line = [sys.executable, "-c", LOOK, *MODULES, "agiraph.cli.run", "agiraph.cli.up"]
    told = subprocess.run(line, capture_output=True, check=True, text=True)
    return dict(json.loads(line) for line in told.stdout.splitlines())


@pytest.mark.parametrize("module", MODULES)
def test_a_client_command_imports_no_server_module(
    loaded: dict[str, list[str]], module: str
) -> None:
    assert module in loaded[module]
    assert _below(SERVER_MODULES, loaded[module]) == []


def _below(packages: Iterable[str], modules: Iterable[str]) -> list[str]:
    starts = tuple(f"{package}." for package in packages)
    return [name for name in modules if f"{name}.".startswith(starts)]


@pytest.mark.parametrize("module", ["agiraph.cli.run", "agiraph.cli.up"])
def test_work_begins_without_what_only_some_work_needs(
    loaded: dict[str, list[str]], module: str
) -> None:
    assert _below(USED_LATER, loaded[module]) == []


@pytest.mark.parametrize("module", MOST_MODULES)
def test_a_command_imports_a_bounded_number_of_modules(
    loaded: dict[str, list[str]], module: str
) -> None:
    assert len(loaded[module]) <= MOST_MODULES[module]


def test_a_server_starts_without_what_only_some_work_needs(tmp_path: Path) -> None:
    told = tmp_path / "imports"
    environ = {"PATH": os.environ["PATH"], "AGIRAPH_HOME": str(tmp_path / "home")}
    environ |= {"AGIRAPH_PORT": "0", "AGIRAPH_MODEL": "demo"}
    line = [sys.executable, "-X", "importtime", "-m", "agiraph", "up"]
    with (
        told.open("w") as log,
        subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=log, text=True, env=environ
        ) as server,
    ):
        assert server.stdout is not None
        assert any("is up at" in line for line in iter(server.stdout.readline, ""))
        server.terminate()
    modules = {line.rpartition("|")[2].strip() for line in told.read_text().splitlines()}
    assert "agiraph.serving" in modules
    assert _below({*USED_LATER} - {"agiraph.features.channels.inlet"}, modules) == []


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
