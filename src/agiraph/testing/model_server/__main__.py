"""Command: one fixed reply over three wire formats, for trying things by hand."""

import argparse
import asyncio
import contextlib

from agiraph.testing.model_server.server import ModelServer
from agiraph.testing.script import says


async def serve(port: int, reply: str) -> None:
    async with ModelServer(lambda _: says(reply), port=port) as server:
        print(f"{server.url} answers {reply!r} until Ctrl-C", flush=True)
        await asyncio.get_running_loop().create_future()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m agiraph.testing.model_server",
        description="Serve one fixed reply over three wire formats.",
    )
    parser.add_argument("--port", type=int, default=8089, help="0 takes any free port")
    parser.add_argument("--reply", default="Hello.", metavar="TEXT")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(options.port, options.reply))


if __name__ == "__main__":
    main()
