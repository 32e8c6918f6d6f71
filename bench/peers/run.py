"""Peers: the same work with agiraph and other runtimes, beside a bare loop: `make bench-peers`.

W1 is 60 turns in memory, W2 110 turns that are kept, W3 200 agents with 20 calls of 200 ms, W4 50
agents with 5, W5 the first turn of a new process and the memory of 200 agents. agiraph is durable
in each of them. Each runs in a process of its own; the ratios are to the bare loop of this run.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from bench.stub import Stub

ROOT = Path(__file__).parent.parent.parent
PEERS = ("bare", "ours", "langgraph", "agents_sdk", "agent_framework")
MODELS = {"W1": (60, 0.0), "W2": (110, 0.0), "W3": (20, 0.2), "W4": (5, 0.2), "W5": (2, 0.0)}
"""Turns until the model ends, and the seconds that it takes for each, by workload."""


def _measure(peer: str, workload: str, python: str) -> dict[str, float]:
    turns, delay = MODELS[workload]
    with Stub(turns, delay) as stub:
        line = (python, "-m", "bench.peers.workloads", peer, workload, stub.url)
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{peer} did not end {workload}:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="the Python of the environment of the peers")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS))
    options = parser.parse_args()
    for workload in options.only:
        print(f"{workload:<18}" + "".join(f"{peer:>22}" for peer in PEERS), flush=True)
        found = {
            peer: _measure(peer, workload, sys.executable if peer == "ours" else options.python)
            for peer in PEERS
        }
        for what, floor in found["bare"].items():
            row = "".join(
                f"{found[peer][what]:>12,.2f} ({found[peer][what] / floor:>7.1f})" for peer in PEERS
            )
            print(f"  {what:<16}{row}", flush=True)


if __name__ == "__main__":
    main()
