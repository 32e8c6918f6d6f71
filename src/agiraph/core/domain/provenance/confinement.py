"""Confinement: the levels at which commands of agents can be confined."""

from typing import Literal

Level = Literal["bubblewrap", "namespaces", "landlock", "none"]
