"""Plurals: a number with the noun, or the rest of the sentence, that goes with it."""


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its words, such as `1 task` or `2,000 tasks`; without `many`, the plural
    of `one` has an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def times(count: int) -> str:
    """Return how often something happened: `once`, `2 times`."""
    return "once" if count == 1 else f"{count:,} times"
