"""Failed tests are run again alone, and the exit code is right in every case."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("rerun.py")
UNSTABLE = """
from pathlib import Path
import pytest

def test_that_passes():
    pass

def test_that_passes_the_second_time():
    try:
        Path("ran").touch(exist_ok=False)
    except FileExistsError:
        return
    raise AssertionError("the first time")
"""
SKIPPED = UNSTABLE.replace("return", "pytest.skip('no longer')")
FAILS = "def test_that_fails():\n    assert 1 == 2\n"
MANY = """
import pytest

@pytest.mark.parametrize("number", range(9))
def test_that_fails(number):
    assert number < 0
"""
BROKEN_FIXTURE = """
from pathlib import Path
import pytest

@pytest.fixture
def broken():
    yield
    Path("ran").touch(exist_ok=False)
    raise AssertionError("at the end")

def test_with_it(broken):
    pass
"""
ENDS_THE_RUN = """
import os, signal

def test_that_fails():
    assert 1 == 2

def test_that_ends_the_run():
    {ending}
"""
AGAIN = "running again, alone"


def run(folder: Path, text: str, *options: str) -> tuple[int, str]:
    """Run the tests of this text; return the exit code and the output."""
    (folder / "test_inner.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    # Each plug-in that is installed would be imported, at each of the many starts.
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(SCRIPT.parents[1])}
    command = [sys.executable, str(SCRIPT), "-q", "-p", "tests.workers", *options]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def summary(output: str) -> str:
    """Return the last summary of pytest, without its time."""
    lines = [line for line in output.splitlines() if " in " in line and line.endswith("s")]
    return lines[-1].strip("= ").partition(" in ")[0]


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_test_that_passes_alone_is_reported_as_unstable(tmp_path: Path, processes: str) -> None:
    code, output = run(tmp_path, UNSTABLE, f"--workers={processes}")
    name = "test_inner.py::test_that_passes_the_second_time"
    assert (code, summary(output)) == (0, "1 passed")
    assert "1 failed, 1 passed" in output
    assert output.splitlines()[-1] == f"unstable: passed only alone: {name}"


@pytest.mark.parametrize(
    ("text", "options", "code", "said", "reruns"),
    [
        pytest.param("def test_it(): pass", (), 0, "1 passed", False, id="all pass"),
        pytest.param(FAILS, (), 1, "1 failed", True, id="one fails twice"),
        pytest.param(MANY, (), 1, "9 failed", False, id="too many fail"),
        pytest.param(SKIPPED, (), 1, "1 skipped", True, id="skipped the second time"),
        pytest.param(BROKEN_FIXTURE, (), 1, "1 passed, 1 error", True, id="a fixture fails twice"),
        pytest.param("1 / 0", (), 2, "1 error", False, id="the file cannot be imported"),
        pytest.param("", (), 5, "no tests ran", False, id="no tests"),
        pytest.param(FAILS + UNSTABLE, ("-x",), 1, "1 failed", False, id="stopped at the first"),
        pytest.param(
            ENDS_THE_RUN.format(ending="raise KeyboardInterrupt"),
            (),
            2,
            "1 failed",
            False,
            id="interrupted",
        ),
    ],
)
def test_every_other_run_has_the_exit_code_of_pytest(
    tmp_path: Path, text: str, options: tuple[str, ...], code: int, said: str, reruns: bool
) -> None:
    got, output = run(tmp_path, text, *options)
    assert (got, summary(output), AGAIN in output) == (code, said, reruns)
    assert "unstable" not in output


@pytest.mark.parametrize(
    ("conftest", "options", "code"),
    [
        ("def pytest_runtest_logreport(report):\n    1 / 0\n", (), 3),
        ("", ("--no-such-option",), 4),
    ],
    ids=["error inside pytest", "wrong option"],
)
def test_a_run_that_pytest_cannot_make_is_not_repeated(
    tmp_path: Path, conftest: str, options: tuple[str, ...], code: int
) -> None:
    (tmp_path / "conftest.py").write_text(conftest)
    got, output = run(tmp_path, FAILS, *options)
    assert (got, AGAIN in output) == (code, False)


def test_a_killed_run_has_the_exit_code_that_a_shell_gives(tmp_path: Path) -> None:
    killed = ENDS_THE_RUN.format(ending="os.kill(os.getpid(), signal.SIGKILL)")
    got, output = run(tmp_path, killed)
    assert (got, AGAIN in output) == (128 + signal.SIGKILL, False)
