"""Wording: what the product says to people and models, kept in one file that tests compare with.

A test that checks nothing but words takes the fixture `wording` and calls it with what was said: a
text, or several by name. The words stand in `wording.json` and are compared on every run; a test
without an entry there fails. `pytest --update-wording TESTS` writes the entries of these tests, in
one process; read the difference before you commit it.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.errors import Refused

FILE = Path(__file__).with_name("wording.json")
_DATABASE = re.compile(r"(?<=\[)(sqlite|postgres)-|-(sqlite|postgres)(?=\])|\[(sqlite|postgres)\]")
_PORT = re.compile(r"\b127\.0\.0\.1:\d+")
"""A server of a test, which is called `HOST` in the file."""

NAME = 200
"""Characters of what was refused that name it in the file."""
Entry = str | list[str] | dict[str, str | list[str]]
"""A text, or texts by name. A text of several lines is a list of them."""


@dataclass(slots=True)
class Wording:
    """The words of one test. Call it with what was said; it fails if that is not in the file."""

    expected: list[Entry] | None
    """None: what is said is to be written into the file."""
    place: str | None = None
    """The folder of the test, which is called `TMP` in the file."""
    said: list[Entry] = field(default_factory=list[Entry])

    def __call__(self, said: str | Mapping[str, str], /) -> None:
        is_one = isinstance(said, str)
        self.said.append(
            self._lines(said) if is_one else {key: self._lines(text) for key, text in said.items()}
        )
        if self.expected is not None:
            number = len(self.said) - 1
            assert number < len(self.expected), "tests/wording.json lacks it: --update-wording"
            assert self.said[number] == self.expected[number]

    def close(self) -> None:
        """Fail if the file has more words than the test has compared."""
        assert self.expected is None or len(self.said) == len(self.expected)

    def _lines(self, text: str) -> str | list[str]:
        text = _PORT.sub("HOST", text if self.place is None else text.replace(self.place, "TMP"))
        return text.split("\n") if "\n" in text else text


def pytest_addoption(parser: pytest.Parser) -> None:
    what = "write the words of these tests into tests/wording.json instead of comparing them"
    parser.addoption("--update-wording", action="store_true", help=what)


@pytest.fixture
def wording(request: pytest.FixtureRequest) -> Iterator[Wording]:
    """Compare what was said with the words in the file."""
    file = str(request.path.relative_to(FILE.parent))
    test = _DATABASE.sub("", request.node.name)
    place = str(request.getfixturevalue("tmp_path")) if "tmp_path" in request.fixturenames else None
    is_update = bool(request.config.getoption("--update-wording"))
    words = Wording(None if is_update else kept().get(file, {}).get(test, []), place)
    failed = request.session.testsfailed
    yield words
    if is_update:
        write(file, test, words.said)
    elif request.session.testsfailed == failed:
        words.close()


def kept() -> dict[str, dict[str, list[Entry]]]:
    """Return the entries of each test, by its file and its name without the database."""
    return json.loads(FILE.read_text())


def write(file: str, test: str, said: list[Entry]) -> None:
    words: Any = kept()
    words.setdefault(file, {})[test] = said
    ordered = {name: dict(sorted(words[name].items())) for name in sorted(words)}
    FILE.write_text(json.dumps(ordered, ensure_ascii=False, indent=1) + "\n")


def refusals(
    wrong: Iterable[Any], act: Callable[..., object], error: type[Exception] = Refused
) -> dict[str, str]:
    """Return the words with which each of these is refused; a tuple is several arguments."""
    told: dict[str, str] = {}
    for case in wrong:
        with pytest.raises(error) as refused:
            act(*case) if isinstance(case, tuple) else act(case)
        assert told.setdefault(str(case)[:NAME], str(refused.value)) == str(refused.value)
    return told


async def refusals_of(
    wrong: Iterable[Any], act: Callable[..., Awaitable[object]], error: type[Exception] = Refused
) -> dict[str, str]:
    """Return the words with which each of these is refused; a tuple is several arguments."""
    told: dict[str, str] = {}
    for case in wrong:
        with pytest.raises(error) as refused:
            await (act(*case) if isinstance(case, tuple) else act(case))
        assert told.setdefault(str(case)[:NAME], str(refused.value)) == str(refused.value)
    return told
