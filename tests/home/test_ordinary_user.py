"""Ordinary user: the tests of sandbox, files and folders pass without any privilege, too."""

import os

import pytest
from tests.home.ordinary_user import check_as_ordinary

FILES = (
    "tests/home/test_sandbox.py",
    "tests/home/test_given_folders.py",
    "tests/home/test_safe_folder.py",
    "tests/home/test_layout.py",
    "tests/tools/test_given_folders.py",
)


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as an ordinary user already")
def test_tests_of_sandbox_and_folders_pass_for_an_ordinary_user() -> None:
    done = check_as_ordinary(*FILES)
    assert (done.returncode, " failed" in done.stdout) == (0, False), done.stdout[-5000:]
