"""Prompts: the texts for models, read from the files beside this one."""

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """Return the text of `name.md`."""
    return (files("agiraph.core.prompts") / f"{name}.md").read_text().strip()
