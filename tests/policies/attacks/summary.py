"""Summary: the figures of all attacks, printed at the end of the tests."""

from typing import Any

from tests.policies.attacks.scenario import Attack, Outcome

ATTACK = "attack"
"""The name of the report property that holds what came of one attack."""


def record(properties: list[tuple[str, object]], attack: Attack, outcome: Outcome) -> None:
    """Add the outcome to a test's report, which also reaches the process that prints."""
    found = {
        "group": attack.group,
        "trusts": sorted(outcome.harm),
        "bytes": outcome.bytes_at_sink,
        "harmed": sum(bool(harm) for harm in outcome.harm.values()),
        "twin": bool(outcome.twin),
        "unmarked": len(outcome.unlabelled) + len(outcome.unfenced),
    }
    properties.append((ATTACK, found))


def write(terminalreporter: Any) -> None:
    """Write how many attacks of each group were played, and what they achieved."""
    reports = [r for found in terminalreporter.stats.values() for r in found]
    played: list[Any] = [
        value
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in getattr(report, "user_properties", ())
        if name == ATTACK
    ]
    if not played:
        return
    terminalreporter.section("attacks by untrusted text")
    for group in dict.fromkeys(one["group"] for one in played):
        terminalreporter.write_line(_line(group, [one for one in played if one["group"] == group]))
    terminalreporter.write_line(_line("all", played))


def _line(group: str, played: list[Any]) -> str:
    trusts = sorted({trust for one in played for trust in one["trusts"]})
    return (
        f"{group:14} {len(played):4} scenarios in {' and '.join(trusts)}:"
        f" {sum(one['bytes'] for one in played)} bytes of a secret at the sink,"
        f" {sum(one['harmed'] for one in played)} teams harmed,"
        f" {sum(one['unmarked'] for one in played)} words without label or fence,"
        f" {sum(one['twin'] for one in played)} twins that worked"
    )
