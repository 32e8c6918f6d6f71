"""Few files: `agiraph` in a process that may open only as many files as `FILES` says."""

import os
import resource

from agiraph import __main__ as agiraph


def main() -> None:
    files = int(os.environ["FILES"])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    agiraph.main()
