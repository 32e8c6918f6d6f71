"""Llama server: SmolLM2-135M on llama.cpp's own HTTP server, as a program of its own.

Runs in the environment that `tests/install` makes, not in the tests' own:

    python llama_server.py WEIGHTS PORT WINDOW [--no-jinja]

It prints its address when it is ready and ends when its standard input is closed.
"""

import os
import sys

MAX_REPLY_TOKENS = 64
"""Far more than a small model says that means anything, and little enough for a slow machine."""


def main(weights: str, port: int, window: int, *, has_tools: bool) -> None:
    import xllamacpp  # pyright: ignore[reportMissingImports]

    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = window
    params.n_parallel = 1
    params.n_predict = MAX_REPLY_TOKENS
    params.use_jinja = has_tools
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.verbosity = 0
    params.model_alias = {"smollm2"}
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # in the middle of a reply, too


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), has_tools="--no-jinja" not in sys.argv)
