"""Tests in forked processes: each runs once and is reported, also if its process dies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workers import pieces

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1]
MANY = """
import os
import pytest

@pytest.fixture(scope="module")
def process():
    print("module fixture of", os.getpid())
    yield os.getpid()

@pytest.mark.parametrize("number", range(60))
def test_of_a_number(number, process, tmp_path, capfd):
    print("number", number)
    assert capfd.readouterr().out == f"number {number}\\n"
    with open("ran", "a") as file:
        file.write(f"{process} {number}\\n")
    assert number != 41, "this one fails"

@pytest.mark.skip(reason="not today")
def test_that_is_skipped():
    pass
"""
DIES = """
import os
import pytest

@pytest.mark.parametrize("number", range(10))
def test_of_a_number(number):
    with open("ran", "a") as file:
        file.write(f"{os.getpid()} {number}\\n")
    if number == 4:
        os._exit(7)
"""


def run(folder: Path, text: str, *options: str) -> tuple[int, str, list[tuple[str, int]]]:
    """Run the tests of this text; return the exit code, the output, and which process ran what."""
    (folder / "test_inner.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(FOLDER)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.workers", *options]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False
    )
    lines = (folder / "ran").read_text().splitlines()
    ran = [(process, int(number)) for process, number in (line.split() for line in lines)]
    return done.returncode, done.stdout + done.stderr, ran


def test_every_test_runs_once_in_one_of_the_processes(tmp_path: Path) -> None:
    code, output, ran = run(tmp_path, MANY, "--workers=3")

    assert (code, sorted(number for _, number in ran)) == (1, list(range(60)))
    assert "1 failed, 59 passed, 1 skipped" in output
    assert "this one fails" in output
    assert output.count("test_of_a_number[41]") >= 1
    assert 2 <= len({process for process, _ in ran}) <= 3


def test_a_test_whose_process_ends_has_failed_and_the_others_run(tmp_path: Path) -> None:
    code, output, ran = run(tmp_path, DIES, "--workers=2")

    assert (code, sorted(number for _, number in ran)) == (1, list(range(10)))
    assert "1 failed, 9 passed" in output
    assert "test_of_a_number[4]: its process ended with 7" in output


@pytest.mark.parametrize(("workers", "ended"), [(2, "1 failed, 9 passed"), (0, "Timeout")])
def test_a_test_that_hangs_is_ended_with_its_stack(
    tmp_path: Path, workers: int, ended: str
) -> None:
    hanging = DIES.replace("os._exit(7)", "os.read(os.pipe()[0], 1)")
    code, output, _ = run(tmp_path, hanging, f"--workers={workers}", "--hard-limit=2")

    assert code == 1
    assert ended in output
    assert 'test_inner.py", line 10 in test_of_a_number' in output


def test_no_more_tests_are_started_after_the_first_failure_if_so_asked(tmp_path: Path) -> None:
    failing = MANY.replace("number != 41", "number > 60")
    code, output, ran = run(tmp_path, failing, "--workers=2", "-x")

    assert code == 1
    assert "stopping after" in output
    assert len(ran) <= 6


def test_a_worker_is_given_the_tests_of_one_file_in_a_row() -> None:
    long, short, sweep = Path("a", "test_a.py"), Path("a", "test_b.py"), Path("faults", "test_c.py")
    files = [long] * 3 + [short] * 2 + [sweep] * 2
    assert list(pieces(files)) == [[0, 1, 2], [3, 4], [5], [6]]
    assert list(pieces(files, singly=True)) == [[number] for number in range(7)]
