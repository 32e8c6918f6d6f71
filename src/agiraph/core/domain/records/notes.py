"""Notes: what agents write into the files of their memory; it may hold untrusted text."""

from collections.abc import Sequence

from agiraph.core.domain.agents import Agent, Team
from agiraph.core.domain.text.passages import words

FRONT = "> Unverified,"
"""How the line begins that the runtime writes above an unverified note."""
LEAST_SHARED_WORDS = 2
"""How many words a text and a task must share for the text to be shown."""


def query_for(team: Team, agent: Agent, task: str) -> str:
    """Return the words by which texts for a task of the agent are chosen."""
    return f"{team.goal}\n{task}" if agent.role == "coordinator" else task


def fits(text: str, terms: Sequence[str]) -> bool:
    """Whether enough of these words stand in the text, besides the line of the runtime."""
    contained = set(words("\n".join(ln for ln in text.splitlines() if not ln.startswith(FRONT))))
    shared = sum(term in contained for term in terms)
    return shared >= min(LEAST_SHARED_WORDS, len(terms))


def unverified_lines(text: str, confirmed: str) -> list[str]:
    """Return the lines of a file that are not in its last clean version, without blank ones."""
    known = {line.strip() for line in confirmed.splitlines()}
    return [line for line in text.splitlines() if line.strip() and line.strip() not in known]


def with_lines_kept(content: str, *, confirmed: str, others: Sequence[str], longest: int) -> str:
    """Return a new text for a file with the lines that it must not lose: all of its last clean
    version, and of the `others` those that fit into `longest` bytes."""
    text = content
    if unverified_lines(confirmed, content):
        text = _joined(confirmed, unverified_lines(content, confirmed))
    room = longest - len(text.encode(errors="replace"))
    kept: list[str] = []
    for line in unverified_lines("\n".join(others), text):
        room -= len(line.encode(errors="replace")) + 2
        if room > 0:
            kept.append(line)
    return _joined(text, kept) if kept else text


def _joined(text: str, more: Sequence[str]) -> str:
    return "\n".join([text.rstrip(), "", *more]).strip() + "\n"
