"""Rerun: run all tests, then run the few that failed once more, with nothing beside them.

As a program: `python tests/rerun.py OPTIONS…`, where OPTIONS are pytest's, without paths. A test
that fails because the machine is overloaded passes alone, and is reported as unstable. The exit
code is pytest's. With more failures, or after a run that did not end by itself, nothing is rerun.
"""

import json
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # only the process that runs the tests needs it
    import pytest

MOST = 8
"""How many failed tests are rerun. More have a cause that is not chance."""
OK, TESTS_FAILED = 0, 1
"""Exit codes of pytest."""


@dataclass(slots=True, eq=False)
class Outcomes:
    """A pytest plugin that writes the names of failed and passed tests into a file."""

    path: Path
    failed: dict[str, None] = field(default_factory=dict)
    passed: dict[str, None] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: "pytest.TestReport") -> None:
        if report.failed:
            self.failed[report.nodeid] = None
        elif report.passed and report.when == "call":
            self.passed[report.nodeid] = None

    def pytest_sessionfinish(self, session: "pytest.Session") -> None:
        if session.shouldstop or session.shouldfail:
            return  # tests are missing: the names of those that failed so far say little
        passed = [name for name in self.passed if name not in self.failed]
        self.path.write_text(json.dumps({"failed": list(self.failed), "passed": passed}))


def pytest_addoption(parser: "pytest.Parser") -> None:
    parser.addoption("--outcomes", type=Path, help="write failed and passed tests to this file")


def pytest_configure(config: "pytest.Config") -> None:
    if (path := config.getoption("--outcomes")) is not None:
        config.pluginmanager.register(Outcomes(path))


def run(arguments: list[str]) -> tuple[int, list[str], list[str]]:
    """Run pytest; return its exit code, the failed tests and the passed tests.

    There are no names if the run was cut short.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "outcomes.json")
        command = [sys.executable, "-m", "pytest", "-p", "tests.rerun", f"--outcomes={path}"]
        child = subprocess.Popen([*command, *arguments])
        # Pytest ends in its own way, and says so with its exit code. Ctrl-C reaches it by itself.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        code = child.wait()
        found = json.loads(path.read_text()) if path.exists() else {"failed": [], "passed": []}
    return code if code >= 0 else 128 - code, found["failed"], found["passed"]


def main(options: list[str]) -> int:
    """Run all tests, and the failed ones again if they are few; return the exit code."""
    code, failed, _ = run(options)
    if code != TESTS_FAILED or not 1 <= len(failed) <= MOST:
        return code
    print(f"\n{len(failed)} failed: running again, alone", flush=True)
    code, _, passed = run([*options, "--workers=0", *failed])
    if code != OK:
        return code
    if missing := [name for name in failed if name not in passed]:
        print(f"failed, and did not run alone: {', '.join(missing)}", flush=True)
        return TESTS_FAILED
    print(f"unstable: passed only alone: {', '.join(failed)}", flush=True)
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
