"""Built files: they match the sources, stay within their size budget, and load nothing foreign."""

import gzip
import importlib.util
import json
import re
from pathlib import Path

import pytest

from agiraph.api.web_ui import BUILT

WEB = Path(__file__).parents[2] / "web"
FIRST_LOAD, LAZY_CHUNK, ALL_CODE, OPTIONAL_CODE = 157_000, 75_000, 633_000, 110_000
OUTPUT = 2_600_000
"""Bytes, compressed except for the last, which is the size of all files in the package."""
OPTIONAL = ("Formula-", "Diagram-")
"""Code that is loaded for a text with a formula or a diagram. It counts by itself."""


def _gzip_bytes(*files: Path) -> int:
    return sum(len(gzip.compress(file.read_bytes(), 6)) for file in files)


@pytest.fixture(scope="module")
def code() -> list[Path]:
    return [*BUILT.glob("assets/*.js"), *BUILT.glob("assets/*.css")]


@pytest.fixture(scope="module")
def first_load_files() -> list[Path]:
    """The files that the page references itself, and so loads at once."""
    named = re.findall(r'(?:src|href)="/(assets/[^"]+)"', (BUILT / "index.html").read_text())
    return [BUILT / name for name in named]


def test_the_built_files_match_the_sources_and_the_api() -> None:
    spec = importlib.util.spec_from_file_location("stamp", WEB / "stamp.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    built = json.loads((BUILT / "build.json").read_text())

    assert built == module.stamp(), "run `make web` and commit web/src/api and src/agiraph/web_dist"


def test_the_built_files_are_within_their_size_budget(
    code: list[Path], first_load_files: list[Path]
) -> None:
    lazy = {file.name: _gzip_bytes(file) for file in code if file not in first_load_files}

    assert _gzip_bytes(*(file for file in first_load_files if file.suffix == ".js")) <= FIRST_LOAD
    assert {name: size for name, size in lazy.items() if size > LAZY_CHUNK} == {}
    optional = [file for file in code if file.name.startswith(OPTIONAL)]
    assert _gzip_bytes(*optional) <= OPTIONAL_CODE
    assert _gzip_bytes(*code) - _gzip_bytes(*optional) <= ALL_CODE
    assert sum(file.stat().st_size for file in BUILT.rglob("*") if file.is_file()) <= OUTPUT


def test_the_files_that_the_page_puts_into_the_cache_are_those_that_exist(code: list[Path]) -> None:
    listed = json.loads((BUILT / "chunks.json").read_text())
    assert listed == sorted(f"/assets/{file.name}" for file in code)


def test_the_page_has_no_inline_scripts_or_foreign_addresses() -> None:
    page = (BUILT / "index.html").read_text()

    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"\son\w+=|javascript:|https?://", page) == []


def test_the_frame_of_the_page_is_drawn_before_the_style_sheet_and_the_scripts_arrive() -> None:
    page = (BUILT / "index.html").read_text()
    head, body = page.split("<body>")

    assert "Loading agiraph" in body
    assert 'rel="stylesheet"' not in page  # it would keep the browser from drawing the frame
    assert 'rel="preload" as="style"' in head
    assert re.findall(r'<script(?! type="module")[^>]*>', head) == ['<script src="/theme.js">']


def test_the_lock_file_contains_no_registry_address() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text())

    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert "://" not in (WEB / "package-lock.json").read_text()


def test_package_versions_are_pinned() -> None:
    package = json.loads((WEB / "package.json").read_text())
    wanted = package["dependencies"] | package["devDependencies"] | package["overrides"]

    exact = re.compile(r"(npm:[\w@/-]+@)?[\d.]+")
    assert [name for name, version in wanted.items() if not exact.fullmatch(version)] == []
