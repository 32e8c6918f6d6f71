"""Patterns: no regular expression of the package is slow on a text that somebody else chose."""

import time
from itertools import pairwise

import pytest

from tests.patterns import Found, in_package, pumped

SMALL, MIDDLE, SIZES = 128, 512, (2048, 4096, 8192)
NOTHING_S = 0.003
"""A pattern that reads the first of SIZES characters in less time is not looked at further."""
GROWTH = 3.2
"""The most by which the time grows for a text of twice the length: 2 is linear, 4 quadratic."""
PUT_TOGETHER = {
    "api/routes/models.py: if re.fullmatch(form, key):": "forms of keys, from our own list",
    'core/home/settings_file.py: made = re.sub(rf"{begin}.*?(?=^[ \\t]*\\[|\\Z)", "", text, '
    "flags=re.MULTILINE | re.DOTALL)": "the person's own settings",
    "late_patterns.py: return re.compile(self._source, self._flags)": (
        "patterns of other modules' constants, which are timed"
    ),
    'core/domain/text/quotations.py: exact = re.compile(f"{before}{pattern}{after}", '
    "re.IGNORECASE)": "words of a quotation, escaped",
    'features/research/model/report_check.py: return re.compile(rf"(?<!\\d)(?<!\\d[.,])'
    '(?:{any_word})(?!\\d|[.,]\\d)", re.IGNORECASE)': "escaped words without repeats",
    "features/research/model/sources.py: if any(re.search(pattern, page) for pattern in "
    'known["talk"]):': "our own list of sites",
    "features/research/model/sources.py: if re.search(pattern, page):": "our own list of sites",
    'features/research/model/sources.py: return "press" if re.search(known["news"], page) else '
    '"unknown"': "our own list of sites",
    'core/policies/batches.py: if re.search(rf"(?<![\\w-]){re.escape(thing)}(?![\\w-])", said):': (
        "an escaped word without repeats"
    ),
    'models/wires/trained_calls.py: named = re.search(rf\'"name"\\s*:\\s*"({_NAME})"\', '
    "text[at:end])": "a name of bounded length",
    "models/wires/trained_calls.py: if not isinstance(name, str) or not re.fullmatch(_NAME, "
    "name):": "a name of bounded length",
    "models/facts/prices.py: return re.search(what, name) is not None": "the package's own list",
    "redaction.py: data, count = re.subn(broken, _masked, data)": "escaped secrets of ours",
    'web/reading_hosts.py: return re.match(f"/{pattern}", path) is not None if slash else True': (
        "the person's own settings"
    ),
    "secret_variables.py: found = {name for pair in re.findall(_VARIABLES, text) for name in pair "
    "if name}": "the person's own settings",
}
"""Patterns that are made when the code runs, each with the reason why no stranger makes it slow."""
NOT_OF_STRANGERS = {
    "features/mcp/settings.py:_VARIABLE": "the person's own settings",
    "sandbox/gate/indexes.py:_PIP_DEFAULT": "what this machine's pip prints about itself",
    "web/pdf_page.py:_RANGE": "an argument of at most 20 characters",
}
"""Slow patterns that read nothing long of a stranger, each with the reason."""
PATTERNS, MADE = in_package()


def seconds(found: Found, text: str) -> float:
    begun = time.thread_time()
    found.run(text)
    return time.thread_time() - begun


def slow_text(found: Found) -> str:
    """Return a text on which the pattern's time grows faster than the text; empty if none is
    found."""
    for start, unit, end in pumped(found.pattern):
        texts = [start + unit * (size // len(unit)) + end for size in (SMALL, MIDDLE)]
        # A cubic one would take minutes on the large texts.
        if any(seconds(found, text) > 0.1 for text in texts):
            return f"{start!r} + n * {unit!r} + {end!r}"
        large = [start + unit * (size // len(unit)) + end for size in SIZES]
        first = seconds(found, large[0])
        if first < NOTHING_S or seconds(found, large[1]) < GROWTH * first:
            continue
        # The best of several: another program may use the processor meanwhile.
        times = [min(seconds(found, text) for _ in range(5)) for text in large]
        if times[0] > NOTHING_S and all(b > GROWTH * a for a, b in pairwise(times)):
            return f"{start!r} + n * {unit!r} + {end!r}: {times[-1] / times[0]:.1f} times"
    return ""


@pytest.mark.parametrize("module", sorted({found.place.partition(":")[0] for found in PATTERNS}))
def test_the_time_of_each_pattern_grows_with_the_text_and_no_faster(module: str) -> None:
    found = [one for one in PATTERNS if one.place.partition(":")[0] == module]
    read = [one for one in found if one.place not in NOT_OF_STRANGERS]
    assert {one.place: slow for one in read if (slow := slow_text(one))} == {}


def test_every_pattern_that_is_not_timed_has_a_reason() -> None:
    assert sorted(set(MADE)) == sorted(PUT_TOGETHER)
    assert NOT_OF_STRANGERS.keys() <= {one.place for one in PATTERNS}
