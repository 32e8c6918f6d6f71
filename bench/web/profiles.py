"""Profile: what the main thread of a page does in a frame, by kind of work and by function."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from playwright.async_api import Page

TRACED = ("devtools.timeline", "disabled-by-default-devtools.timeline")
SAMPLE_US = 250
FUNCTIONS = 8
"""How many functions are named, the most expensive ones first."""
KINDS = {
    "UpdateLayoutTree": "style",
    "Layout": "layout",
    "PrePaint": "paint",
    "Paint": "paint",
    "Layerize": "paint",
    "Commit": "paint",
    "MinorGC": "garbage",
    "MajorGC": "garbage",
    "RunTask": "other",
}
"""Names of Chromium's trace events by kind of work; what is missing here runs scripts."""
NATIVE = {"(program)", "(idle)", "(root)"}


class Profile:
    """A recording of one page. Recording itself costs time: compare the parts, not the sums."""

    def __init__(self, page: Page, cdp: Any) -> None:
        browser = page.context.browser
        assert browser is not None
        self._page, self._browser, self._cdp = page, browser, cdp

    async def start(self) -> None:
        await self._browser.start_tracing(page=self._page, categories=list(TRACED))
        await self._cdp.send("Profiler.enable")
        await self._cdp.send("Profiler.setSamplingInterval", {"interval": SAMPLE_US})
        await self._cdp.send("Profiler.start")

    async def stop(self, frames: int) -> str:
        """Return the summary: milliseconds a frame by kind of work, then by function."""
        sampled = (await self._cdp.send("Profiler.stop"))["profile"]
        traced = json.loads(await self._browser.stop_tracing())["traceEvents"]
        kinds = work_by_kind(traced)
        whole = kinds.total() or 1
        parts = (
            f"{kind} {us / 1000 / frames:.2f} ms ({100 * us / whole:.0f} %)"
            for kind, us in kinds.most_common()
        )
        functions = (
            f"{us / 1000 / frames:.2f} ms {name}"
            for name, us in self_times(sampled).most_common(FUNCTIONS)
        )
        return f"    {', '.join(parts)}\n    self time: {'; '.join(functions)}"


def work_by_kind(events: list[dict[str, Any]]) -> Counter[str]:
    """Return the microseconds of the page's main thread by kind of work.

    An event's own time is its time without that of the events inside it.
    """
    names = [one for one in events if one["name"] == "thread_name"]
    mains = {
        (one["pid"], one["tid"]) for one in names if one["args"].get("name") == "CrRendererMain"
    }
    spent: Counter[str] = Counter()
    for name, us in _own_times([one for one in events if (one["pid"], one["tid"]) in mains]):
        spent[KINDS.get(name, "script")] += us
    return spent


def _own_times(events: list[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    whole = [one for one in events if one["ph"] == "X" and "dur" in one]
    # Of two that begin together the longer one is outside.
    whole.sort(key=lambda one: (one["pid"], one["tid"], one["ts"], -one["dur"]))
    around: list[tuple[int, str]] = []
    for one in whole:
        start, cpu = one["ts"], one.get("tdur", one["dur"])
        while around and around[-1][0] <= start:
            around.pop()
        if around:
            yield around[-1][1], -cpu
        yield one["name"], cpu
        around.append((start + one["dur"], one["name"]))


def self_times(profile: dict[str, Any]) -> Counter[str]:
    """Return the microseconds that were sampled in each function itself."""
    names = {node["id"]: _name(node["callFrame"]) for node in profile["nodes"]}
    spent: Counter[str] = Counter()
    for node, us in zip(profile["samples"], profile["timeDeltas"], strict=True):
        if names[node] not in NATIVE:
            spent[names[node]] += us
    return spent


def _name(frame: dict[str, Any]) -> str:
    file = frame["url"].rsplit("/", 1)[-1].split("-")[0]
    name = frame["functionName"] or "(anonymous)"
    return f"{name} ({file})" if file else name
