"""What agiraph costs, all in one run: ratios against a floor, with the goals beside them."""

import argparse
import gc
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import uvloop

from agiraph.cli.session import tune
from bench import kills, turns, wake


def _row(what: str, value: str, goal: str, met: bool) -> bool:
    print(f"  {what:<58} {value:>16}   {goal:<12} {'met' if met else 'MISSED'}")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    tune()
    gc.collect()
    print(f"A durable turn: CPU of all threads, µs, median of {rounds} interleaved rounds")
    found = uvloop.run(turns.measure(rounds))
    us = found["us"]
    print(f"  {'turns in the thread':<34}" + "".join(f"{mark:>10}" for mark in turns.MARKS))
    names = {
        "raw": "floor, bare socket + append",
        "aiohttp": "floor, aiohttp + append",
        "ours": "agiraph, everything on",
    }
    for key, name in names.items():
        print(f"  {name:<34}" + "".join(f"{us[key][mark]:>10.0f}" for mark in turns.MARKS))
    for key in ("aiohttp", "raw"):
        ratios = "".join(f"{us['ours'][m] / us[key][m]:>10.2f}" for m in turns.MARKS)
        print(f"  {'ratio to the ' + key + ' floor':<34}{ratios}")
    worst = max(us["ours"][m] / us["aiohttp"][m] for m in turns.MARKS)
    growth = us["ours"][800] / us["ours"][50]
    kib = found["io"]["write_bytes"] / 1024
    print("Goals")
    late = uvloop.run(wake.measure())
    end = kills.measure()
    done = f"{end['killed']} / {end['repeated']} / {end['lost']}"
    met = [
        _row("durable turn ÷ floor (HTTP client the same), worst mark", f"{worst:.2f}", "≤ 3", worst <= 3),
        _row("turn 800 ÷ turn 50", f"{growth:.2f}", "≤ 1.3", growth <= 1.3),
        _row("written to disk per turn", f"{kib:.1f} KiB", "≤ 20 KiB", kib <= 20),
        _row("accepted message to first model call, p50", f"{late['p50 ms']:.1f} ms", "", True),
        _row("accepted message to first model call, p99", f"{late['p99 ms']:.1f} ms", "≤ 50 ms",
             late["p99 ms"] <= 50),
        _row("kill -9 ten times in 200 turns: survived / repeated / lost", done, "10 / 0 / 0",
             bool(end["finished"]) and done == "10 / 0 / 0"),
    ]  # fmt: skip
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
