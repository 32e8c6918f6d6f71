"""Loaded modules: a program that prints which modules of a package its process has loaded.

`Shell` forks it from a process that has imported every module of agiraph.
"""

import sys


def main() -> None:
    """Print the names of the loaded modules that begin with the program's argument."""
    print(sorted(name for name in sys.modules if name.startswith(sys.argv[1])))
