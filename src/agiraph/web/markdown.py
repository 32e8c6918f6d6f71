"""Markdown: converts HTML to Markdown. It runs as a script in a process of its own.

    python -I markdown.py URL < page.html

It prints the title on the first line, then the text. It imports nothing of agiraph, and it leaves
out hidden elements, in which a page may address instructions to a model.
"""

import resource
import sys
from html import unescape

TIMEOUT_S = 20
MAX_MEMORY_BYTES = 2 * 2**30


def main() -> None:
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    # A hostile page may make the converter use unlimited memory or time; the kernel stops it.
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT_S, TIMEOUT_S))
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
