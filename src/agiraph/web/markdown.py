"""Markdown: turns HTML into it, as a process of its own that knows nothing of the package.

    python -I markdown.py URL < page.html

The title comes first, on a line of its own, then the text. What stands on a page without being
shown is left out: it is not written for readers.
"""

import resource
import sys
from html import unescape

SECONDS = 20
MEMORY = 2 * 2**30


def main() -> None:
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source = sys.stdin.buffer.read().decode(errors="replace")
    options = ConversionOptions(
        base_url=sys.argv[1],
        extract_metadata=False,
        preprocessing=PreprocessingOptions(preset="standard"),
        max_depth=256,
    )
    text = convert(source, options).content or ""
    sys.stdout.buffer.write(f"{_title(source)}\n{text}".encode(errors="replace"))


def _title(source: str) -> str:
    low = source[:65536].lower()
    start = low.find(">", low.find("<title")) + 1 if "<title" in low else 0
    end = low.find("</title", start)
    return " ".join(unescape(source[start:end]).split()) if 0 < start < end else ""


if __name__ == "__main__":
    main()
