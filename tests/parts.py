"""Parts: the time budget of each folder of tests, and the tests that `make quick` runs.

A part is a folder of tests. Its time is the sum of its tests' times, and `make test` spreads the
tests over five processes. The budgets are for two cores: a fifth of their sum stays
within the 14 minutes of `make test`, which runs its checks beside the tests.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

BUDGETS_S = {
    "api": 380,
    "cli": 200,
    "client": 15,
    "conformance": 50,
    "docs": 15,
    "domain": 40,
    "extensions": 20,
    "faults": 190,
    "habits": 230,
    "home": 155,
    "mcp": 130,
    "policies": 230,
    "providers": 65,
    "real_models": 40,
    "runtime": 420,
    "scenarios": 130,
    "services": 330,
    "store": 55,
    "testing": 20,
    "tools": 170,
    "upgrades": 100,
    "web": 50,
    "web_ui": 890,
    "other": 175,
}
"""Seconds that the tests of a folder may take together, on two cores with five processes."""

NOT_QUICK = frozenset({"faults", "web_ui", "scenarios", "real_models", "upgrades"})
"""Parts that `make quick` leaves out: crash sweeps, browsers, whole scenarios."""
NOT_QUICK_FILES = frozenset(
    {
        "api/test_across_processes.py",
        "api/test_live.py",
        "api/test_openai.py",
        "api/test_responses_match_schema.py",
        "cli/test_backup.py",
        "cli/test_commands_with_server.py",
        "cli/test_doctor.py",
        "cli/test_full_disk_and_lost_files.py",
        "cli/test_restore.py",
        "conformance/test_faults.py",
        "habits/test_loops.py",
        "habits/test_nonsense_goals.py",
        "home/test_commands.py",
        "home/test_confinement.py",
        "home/test_escapes.py",
        "home/test_sandbox_probes.py",
        "mcp/test_server.py",
        "mcp/test_sign_in.py",
        "policies/test_attack_mutants.py",
        "policies/test_attacks.py",
        "policies/test_breaker.py",
        "policies/test_links_and_readers.py",
        "policies/test_prompt_injection.py",
        "providers/test_demo.py",
        "providers/test_http_connection_tls.py",
        "providers/test_http_proxy.py",
        "research/test_known_web.py",
        "research/test_rude_models.py",
        "runtime/test_command_line.py",
        "runtime/test_command_line_ends.py",
        "runtime/test_email.py",
        "runtime/test_outbox.py",
        "runtime/test_shutdown.py",
        "runtime/test_time_limit.py",
        "services/test_pairs.py",
        "store/test_damage.py",
        "testing/test_model_server_faults.py",
        "tests/test_rerun.py",
        "tests/test_workers.py",
        "tools/test_command_network.py",
        "tools/test_file_labels.py",
        "tools/test_packages.py",
        "tools/test_sandboxed_commands.py",
        "tools/test_shell.py",
        "web/test_pdf.py",
    }
)
"""Files that `make quick` leaves out: their tests start servers, play whole attacks, wait for real
time limits, or are costly to collect."""
NOT_QUICK_FIXTURES = frozenset({"postgres", "agiraph", "executed", "either"})
"""Fixtures of tests that `make quick` leaves out: they start programs."""
SLOWEST = frozenset({"test_accessibility.py", "test_hostile.py", "test_time.py"})
"""Files with a test of more than ten seconds, beside those in `faults`."""
LONG_FILES = frozenset({"test_open_webui.py", "test_responses_in_many_examples.py"})
"""Files with nothing but such tests of `make faults`."""


def part_of(path: Path) -> str:
    """Return the name of the part that a test file belongs to."""
    folder = path.parent.name
    return folder if folder in BUDGETS_S else "other"


def is_among_slowest(path: Path) -> bool:
    """Return whether the tests of this file start first.

    The run lasts longer if a process starts a sweep last: the other processes wait for it.
    """
    return path.parent.name == "faults" or path.name in SLOWEST


def is_ignored(path: Path, *, quick: bool, long: bool) -> bool:
    """Return whether the tests of this file or folder need not even be collected."""
    is_part = path.parent.name == "tests" and path.name in NOT_QUICK
    name = f"{path.parent.name}/{path.name}"
    if quick and (is_part or path.parent.name in NOT_QUICK or name in NOT_QUICK_FILES):
        return True
    return not long and path.name in LONG_FILES


def is_quick(item: pytest.Item) -> bool:
    """Return whether `make quick` runs this test.

    The parts in `NOT_QUICK`, the tests on PostgreSQL, those that start `agiraph` in a process and
    those marked `slow` are left out.
    """
    if part_of(item.path) in NOT_QUICK or item.get_closest_marker("slow"):
        return False
    fixtures: list[str] = getattr(item, "fixturenames", [])
    chosen = getattr(getattr(item, "callspec", None), "params", {}).get("database_url")
    return chosen != "postgres" and NOT_QUICK_FIXTURES.isdisjoint(fixtures)


def write_times(terminalreporter: Any) -> None:
    """Write one line for each part: seconds, budget, tests, and whether it is over its budget."""
    seconds: dict[str, float] = defaultdict(float)
    tests: dict[str, int] = defaultdict(int)
    for report in (r for found in terminalreporter.stats.values() for r in found):
        if not hasattr(report, "duration"):
            continue
        part = part_of(Path(report.nodeid.partition("::")[0]))
        seconds[part] += report.duration
        tests[part] += report.when == "call"
    if len(seconds) < 2:
        return
    terminalreporter.section("time of each part, summed over its tests")
    for part, spent in sorted(seconds.items(), key=lambda one: -one[1]):
        over = "  OVER BUDGET" if spent > BUDGETS_S[part] else ""
        line = f"{spent:7.0f} s of {BUDGETS_S[part]:4} s  {tests[part]:5} tests  {part}{over}"
        terminalreporter.write_line(line)
    total, budget = sum(seconds.values()), sum(BUDGETS_S.values())
    terminalreporter.write_line(f"{total:7.0f} s of {budget:4} s  {sum(tests.values()):5} tests")
