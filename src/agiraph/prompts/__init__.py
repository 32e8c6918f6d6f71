"""Prompts: the words models are given, kept in files beside this one."""

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """The text of `name.md`."""
    return (files("agiraph.prompts") / f"{name}.md").read_text().strip()
