"""Sizes: a number of bytes in the unit that people read."""


def size(count: int) -> str:
    """Return a number of bytes as text, such as 12 MiB."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count //= 1024
    return f"{count:,.0f} GiB"
