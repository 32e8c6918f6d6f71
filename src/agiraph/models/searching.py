"""Searching: the web searches that model vendors offer, as search engines.

A search is one small request of its own. It holds the query and nothing else of a team. Of the
response only the pages that the vendor found are read; the model's own text is dropped. With
OpenAI, the sentence that cites a page is kept as its snippet, because OpenAI sends no text of the
page.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any, cast

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.records.search import Hit, Results, SearchFailed, distinct, one_line
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.models.catalogue import Catalogue
from agiraph.models.facts.prices import Prices
from agiraph.models.http.lookup import LookupFailed, look_up
from agiraph.models.http.proxy import Proxies
from agiraph.models.registry import Account, Keys
from agiraph.models.vendors import VENDOR_BY_NAME, Vendor
from agiraph.models.wires.anthropic import anthropic_usage
from agiraph.models.wires.gemini import gemini_usage
from agiraph.models.wires.usage import UsageReader, openai_usage
from agiraph.web.access import DefaultEngine, Web
from agiraph.web.open_sources import OpenEngine

TIMEOUT_S = 60.0
"""The time limit of one search: a vendor's model searches and writes before it answers."""
MAX_OUTPUT_TOKENS = 1024
LONGEST_PAUSES = 4
"""How often a paused answer of Anthropic is sent back."""
USD_PER_1000: Mapping[str, float] = {
    "openrouter": 20.0,
    "anthropic": 10.0,
    "openai": 10.0,
    "gemini": 14.0,
}
"""What the vendors charge for a thousand searches beside the tokens (2026). OpenRouter's price is
that of five results of its own engine a search; it also tells what each call cost."""
MODELS: Mapping[str, str] = {
    "openrouter": "anthropic/claude-haiku-5.5",
    "anthropic": "claude-haiku-5-5",
    "openai": "gpt-6-luna",
    "gemini": "gemini-3.5-flash-lite",
}
"""The small model that each vendor is asked with, unless the settings name another."""
PREFERRED = ("openrouter", "anthropic", "openai")
"""The vendors whose search is used if a key is all that is set, in this order. Gemini's terms want
its search suggestions shown, so its search is used only if a person names it."""
TASK = (
    "Search the web once, with the user's words as the query. Then name each useful result in one "
    "short sentence with its citation. Do not answer from memory."
)
_LINK = re.compile(r"\(?\[[^\[\]]*+\]\((?:[^()]|\([^()]*+\))*+\)\)?")
_TRACKING = re.compile(r"([?&])utm_source=openai(&|$)")
log: logging.Logger = logging.getLogger("agiraph.models")
NO_REASON = "the log says why"

Part = dict[str, Any]
Price = Callable[[str, Usage], float | None]
"""Returns the price of a call to `provider/model`; None if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorEngine:
    """The web search of a model vendor."""

    name: str
    """The vendor's name."""
    key: str = field(default="", repr=False)
    base_url: str = ""
    """Replaces the vendor's own address."""
    model: str = ""
    price: Price = field(default=lambda name, usage: None, repr=False, compare=False)
    proxies: Proxies = field(default=Proxies(), repr=False, compare=False)
    account: Callable[[Vendor], Account] | None = field(default=None, repr=False, compare=False)
    """Returns the key and the address of each search, in place of those above: a person may enter
    or remove a key at any time."""

    @property
    def usd_per_1000(self) -> float | None:
        return USD_PER_1000[self.name]

    @property
    def model_name(self) -> str:
        return self.model or MODELS[self.name]

    async def search(self, query: str, *, limit: int) -> Results:
        engine = self._with_present_key()
        try:
            found = await _SEARCHES[self.name](engine, query, limit)
        except LookupFailed as error:
            raise Refused(self._explain(error)) from error
        except SearchFailed as error:
            raise SearchFailed(str(error), self._priced(error.usage)) from error
        return replace(
            found, hits=distinct(list(found.hits), limit), usage=self._priced(found.usage)
        )

    def _with_present_key(self) -> "VendorEngine":
        if self.account is None:
            return self
        account = self.account(VENDOR_BY_NAME[self.name])
        if not account.key:
            raise Refused(
                f"The search engine ({self.name}) has no key any more: it was removed. Only the "
                "human can enter another. Go on without searching, and say so."
            )
        return replace(self, key=account.key, base_url=account.base_url)

    async def ask(self, path: str, body: Part, headers: Mapping[str, str]) -> Part:
        """Return the vendor's answer to one request."""
        base = (self.base_url or VENDOR_BY_NAME[self.name].base_url).rstrip("/")
        answer = await look_up(
            base + path, headers=headers, body=body, timeout_s=TIMEOUT_S, proxies=self.proxies
        )
        if not isinstance(answer, dict):
            raise SearchFailed(f"The answer of the search engine ({self.name}) cannot be read.")
        return cast(Part, answer)

    def _priced(self, usage: Usage) -> Usage:
        """Return the usage with its price: the vendor's own figure, else one from the price
        lists."""
        usage = usage.bounded()
        if usage.usd is not None:
            return usage
        tokens_usd = self.price(f"{self.name}/{self.model_name}", replace(usage, searches=0))
        searches_usd = usage.searches * USD_PER_1000[self.name] / 1000
        return replace(usage, usd=None if tokens_usd is None else tokens_usd + searches_usd)

    def failed(self, said: str, why: str = NO_REASON) -> str:
        """Return the sentence for a search that the vendor did not make. What the vendor `said` is
        logged for the person: a sentence for a model repeats nothing remote."""
        if said:
            log.warning("%s did not search: %s", self.name, one_line(said)[:200])
        return f"The search engine ({self.name}) did not search: {why}."

    def _explain(self, error: LookupFailed) -> str:
        self.failed(error.reason)
        if error.status == 429 or error.status >= 500:
            return (
                f"The search engine ({self.name}) accepts no more requests now (HTTP "
                f"{error.status}). Search again later, or go on with what you have."
            )
        if error.is_wrong_key or error.status in (401, 402, 403):
            return (
                f"The search engine ({self.name}) does not accept our key, or it may not search "
                f"(HTTP {error.status}). Only the human can fix that, or name another engine "
                "as `search` in agiraph.toml. Go on without searching, and say so."
            )
        if error.status:
            return (
                f"{self.name} did not search with {self.model_name} (HTTP {error.status}). "
                "Only the human can fix that: `model` or another `provider` of [search] in "
                "agiraph.toml. Go on without searching, and say so."
            )
        return f"The search engine ({self.name}) cannot be reached: {error}."


def vendor_engine(keys: Keys, prices: Prices, vendor: str, model: str) -> VendorEngine | None:
    """Return the search engine of a vendor; with "" for its name, of the first in `PREFERRED` that
    has a key and is asked at its own address. None if there is no key."""
    accounts = {name: keys.account(VENDOR_BY_NAME[name]) for name in _SEARCHES}
    own = (name for name in PREFERRED if accounts[name].key and not accounts[name].base_url)
    # A gateway in a vendor's place may not know its search: it is asked only if a person says so.
    chosen = vendor or next(own, "")
    if not chosen or not accounts[chosen].key:
        return None
    return VendorEngine(
        name=chosen,
        key=accounts[chosen].key,
        base_url=accounts[chosen].base_url,
        model=model,
        price=prices.usd,
        proxies=keys.proxies,
    )


async def _ask_openrouter(engine: VendorEngine, query: str, limit: int) -> Results:
    tool = {
        "type": "openrouter:web_search",
        "parameters": {"engine": "auto", "max_results": min(limit, 5), "max_total_results": limit},
    }
    body = {
        "model": engine.model_name,
        "messages": _messages(query),
        "tools": [tool],
        "max_tokens": MAX_OUTPUT_TOKENS,
        "usage": {"include": True},
    }
    headers = {"authorization": f"Bearer {engine.key}"}
    answer = await engine.ask("/chat/completions", body, headers)
    counts = UsageReader(answer.get("usage"))
    usage = openai_usage(counts, "prompt", "completion")
    searches = counts.part("server_tool_use").tokens("web_search_requests")
    usage = replace(usage, searches=max(searches, 1))
    if "error" in answer:
        raise SearchFailed(engine.failed(_text_of(answer["error"], "message")), usage)
    message = _part(_first(answer.get("choices")), "message")
    cited = [_part(note, "url_citation") for note in _parts(message.get("annotations"))]
    hits = [_hit(each, title="title", url="url", snippet="content") for each in cited]
    return Results(hits=tuple(hits), usage=usage)


async def _ask_anthropic(engine: VendorEngine, query: str, limit: int) -> Results:
    messages: list[Part] = [{"role": "user", "content": query}]
    headers = {"x-api-key": engine.key, "anthropic-version": "2023-06-01"}
    blocks, usage = list[Part](), Usage()
    for _ in range(1 + LONGEST_PAUSES):
        body = {
            "model": engine.model_name,
            "max_tokens": MAX_OUTPUT_TOKENS,
            "system": TASK,
            "messages": messages,
            "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}],
        }
        answer = await engine.ask("/v1/messages", body, headers)
        content = _parts(answer.get("content"))
        blocks += content
        usage = usage + anthropic_usage(UsageReader(answer.get("usage")))
        if answer.get("stop_reason") != "pause_turn":
            return _read_anthropic(engine, blocks, usage)
        # The vendor's server stopped in the middle of a long search. It goes on when it gets its
        # own words back unchanged.
        messages = [*messages, {"role": "assistant", "content": content}]
    raise SearchFailed(engine.failed("", "it paused too often"), usage)


def _read_anthropic(engine: VendorEngine, blocks: list[Part], usage: Usage) -> Results:
    cited, found, errors = dict[str, str](), list[Hit](), list[str]()
    for block in blocks:
        for citation in _parts(block.get("citations")):
            cited.setdefault(one_line(citation.get("url")), one_line(citation.get("cited_text")))
        if block.get("type") != "web_search_tool_result":
            continue
        if failure := _part(block, "content"):
            errors.append(_text_of(failure, "error_code"))
        found += [_hit(each, title="title", url="url") for each in _parts(block.get("content"))]
    if errors and not found:
        raise SearchFailed(engine.failed(errors[0], _ERRORS.get(errors[0], NO_REASON)), usage)
    # What Anthropic sends of a page is encrypted for its model; only quotations can be read.
    hits = tuple(replace(hit, snippet=cited.get(hit.url, "")) for hit in found)
    return Results(hits=hits, usage=usage)


_ERRORS: Mapping[str, str] = {
    "too_many_requests": "too many searches at a time; search again later",
    "invalid_tool_input": "it cannot read the query; use other words",
    "query_too_long": "the query is too long; use fewer words",
    "request_too_large": "the query is too long; use fewer words",
    "max_uses_exceeded": "it wanted to search more than once; ask for one thing at a time",
    "unavailable": "its search does not work now; search again later",
}
"""What the codes of a failed search of Anthropic mean."""


async def _ask_openai(engine: VendorEngine, query: str, limit: int) -> Results:
    body = {
        "model": engine.model_name,
        "instructions": TASK,
        "input": query,
        "tools": [{"type": "web_search", "search_context_size": "low"}],
        "tool_choice": "required",
        "include": ["web_search_call.action.sources"],
        "store": False,
        # Its thoughts count; with less, an answer may end before it names a source.
        "max_output_tokens": 8192,
    }
    headers = {"authorization": f"Bearer {engine.key}"}
    answer = await engine.ask("/responses", body, headers)
    items = _parts(answer.get("output"))
    searches = [item for item in items if item.get("type") == "web_search_call"]
    made = sum(_part(item, "action").get("type", "search") == "search" for item in searches)
    usage = openai_usage(UsageReader(answer.get("usage")), "input", "output")
    usage = replace(usage, searches=made)
    if answer.get("error"):
        raise SearchFailed(engine.failed(_text_of(answer["error"], "message")), usage)
    if searches and all(item.get("status") == "failed" for item in searches):
        raise SearchFailed(engine.failed("", "its search failed; search again later"), usage)
    contents = [part for item in items for part in _parts(item.get("content"))]
    hits = [hit for part in contents for hit in _cited_by_openai(part)]
    sources = [
        source for item in searches for source in _parts(_part(item, "action").get("sources"))
    ]
    hits += [_hit(source, title="title", url="url") for source in sources]
    return Results(hits=tuple(map(_untracked, hits)), usage=usage)


def _cited_by_openai(part: Part) -> list[Hit]:
    """Return the cited pages of a text, each with the sentence that cites it."""
    text = part.get("text")
    whole = text if isinstance(text, str) else ""
    hits, begun = list[Hit](), 0
    for note in _parts(part.get("annotations")):
        start, end = note.get("start_index"), note.get("end_index")
        hit = _hit(note, title="title", url="url")
        if isinstance(start, int) and isinstance(end, int) and begun <= start <= end:
            said = one_line(_LINK.sub("", whole[begun:start]))
            hit = replace(hit, snippet=said.lstrip("-*. ").strip())
            begun = end
        hits.append(hit)
    return hits


def _untracked(hit: Hit) -> Hit:
    """Return the hit without the mark that OpenAI adds to each address."""
    url = _TRACKING.sub(lambda match: match[1] if match[2] else "", hit.url)
    title = url if hit.title == hit.url else hit.title
    return replace(hit, url=url, title=title)


async def _ask_gemini(engine: VendorEngine, query: str, limit: int) -> Results:
    body: Part = {
        "systemInstruction": {"parts": [{"text": TASK}]},
        "contents": [{"role": "user", "parts": [{"text": query}]}],
        "tools": [{"google_search": {}}],
    }
    path = f"/v1beta/models/{engine.model_name}:generateContent"
    answer = await engine.ask(path, body, {"x-goog-api-key": engine.key})
    grounding = _part(_first(answer.get("candidates")), "groundingMetadata")
    chunks = [_part(chunk, "web") for chunk in _parts(grounding.get("groundingChunks"))]
    hits = [_hit(chunk, title="title", url="uri") for chunk in chunks]
    for support in _parts(grounding.get("groundingSupports")):
        said = one_line(_part(support, "segment").get("text"))
        for index in cast(list[Any], support.get("groundingChunkIndices") or []):
            if isinstance(index, int) and 0 <= index < len(hits) and not hits[index].snippet:
                hits[index] = replace(hits[index], snippet=said)
    queries = cast(list[Any], grounding.get("webSearchQueries") or [])
    usage = gemini_usage(UsageReader(answer.get("usageMetadata")))
    return Results(hits=tuple(hits), usage=replace(usage, searches=len(queries)))


_SEARCHES: Mapping[str, Callable[[VendorEngine, str, int], Awaitable[Results]]] = {
    "openrouter": _ask_openrouter,
    "anthropic": _ask_anthropic,
    "openai": _ask_openai,
    "gemini": _ask_gemini,
}


def _messages(query: str) -> list[Part]:
    return [{"role": "system", "content": TASK}, {"role": "user", "content": query}]


def _hit(entry: Part, *, title: str, url: str, snippet: str = "") -> Hit:
    address = one_line(entry.get(url))
    words = one_line(entry.get(snippet)) if snippet else ""
    return Hit(title=one_line(entry.get(title)) or address, url=address, snippet=words)


def _parts(listed: object) -> list[Part]:
    """Return the objects of a list; anything else is left out."""
    items = cast(list[Any], listed) if isinstance(listed, list) else []
    return [cast(Part, item) for item in items if isinstance(item, dict)]


def _first(listed: object) -> Part:
    return next(iter(_parts(listed)), Part())


def _part(whole: Part, name: str) -> Part:
    found = whole.get(name)
    return cast(Part, found) if isinstance(found, dict) else {}


def _text_of(whole: object, name: str) -> str:
    found = cast(Part, whole).get(name) if isinstance(whole, dict) else whole
    return one_line(found)


def web_with_keys(web: Web, models: Catalogue) -> Web:
    """Return the web access whose search follows the keys that the models use: an engine that
    nobody has chosen changes with them, and that of a vendor has no other key."""
    engine, registry = web.engine, models.registry
    if web.follows_keys:
        vendors = partial(_vendor_engine, models)
        kept = engine if isinstance(engine, OpenEngine) else OpenEngine()
        return replace(web, engine=DefaultEngine(vendor_engine=vendors, open_sources=kept))
    if isinstance(engine, VendorEngine):
        return replace(web, engine=replace(engine, account=registry.account))
    return web


def _vendor_engine(models: Catalogue) -> VendorEngine | None:
    return vendor_engine(models.registry.keys, models.prices, "", "")
