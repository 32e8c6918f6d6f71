"""Lively: teams in the middle of their work, so that every screen has content."""

import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agiraph.testing import Says, call, says
from agiraph.testing.model_server import Seen, Stall, Step
from tests.scenarios.thread_queries import agent_name, reply_count, seen_created_nodes
from tests.web_ui.browsing import Desk

PRICES = '[models."openai/test"]\nwindow = 200000\ninput_usd = 3.0\noutput_usd = 15.0\n'
"""Prices of the model, so that costs are shown."""
SETTINGS = f'{PRICES}[search]\nprovider = "searxng"\nbase_url = "http://127.0.0.1:9"\n'
"""With a search engine by name: research begins without asking whether open sources answer."""

CHIPS = "Compare the AI accelerators one can buy this year, and recommend one for a small lab."
CATALOGUE = "Choose a vector database for our product catalogue."
WATCH = "Watch the prices of graphics cards and tell me when something changes that matters."

RETURNS = "Which of these cards have users returned, and why?"
OFFERS = "Read the offers that I forward, and keep what matters for our purchases."
FORWARDED = "Here are this week's offers. Keep what matters, and look again on Friday."
OFFER_FILE = "week-47-offers.csv"
CHECK_STOCK = "curl -s https://shop.example/stock/rtx-pro-6000.json | jq .stock"

REPORT = """# A vector database for the catalogue

**pgvector is enough.** With 1.2 million products it answers in 14 ms,
and it needs no second system.

| Database | p95, 1.2 M rows | Per month | Filters |
|---|--:|--:|---|
| pgvector 0.8 | 14 ms | $0 more | SQL |
| Qdrant | 9 ms | $180 | yes |
| Milvus | 11 ms | $340 | yes |

## What would change this

- more than ten million products, or
- searches by picture as well as by words.

```sql
create index on products using hnsw (embedding vector_cosine_ops);
```

The numbers come from our own run; see `bench/results.csv`.
"""

NVIDIA = """# NVIDIA

The RTX PRO 6000 has 96 GB and costs about **$8,500**; an H200 is out of reach for a small lab.

1. Best software support by far.
2. 600 W: a normal socket carries two of them.
"""

CSV = (
    "card,memory,watts,usd\nRTX PRO 6000,96,600,8500\nMI300X,192,750,12000\nGaudi 3,128,900,9500\n"
)

FIRST_LOOK = "Look at the prices once, now."

BRIEFING = (
    "The 96 GB card fell below $8,000 at two shops this morning, the first time since spring. "
    "Both have it in stock. If the lab still wants two, this is 12 % under the plan."
)


def usage(said: Says, tokens: int) -> Says:
    """Return the reply as a vendor counts it: some of its words are thoughts, some are cached."""
    return replace(
        said,
        thinking="Which source is the newest? The list of shops comes first, then the tests.",
        input_tokens=tokens,
        cached_tokens=tokens * 2 // 3,
        output_tokens=tokens // 12,
    )


class Lively:
    """Scripts three teams, some of which stay in the middle of their work."""

    def play(self, seen: Seen) -> Step:
        answer = self._play(seen)
        if not isinstance(answer, Says):
            return answer
        return usage(answer, 4_000 + 700 * len(seen.messages))

    def _play(self, seen: Seen) -> Step:
        everything = seen.system + "".join(message.text for message in seen.messages)
        if "no_work_needed" in seen.tools:
            return self.reply(seen, everything)
        if RETURNS in everything and "web_fetch" in seen.tools:
            return self.dan()
        if "ask_human" not in seen.tools:
            return self.looking_back(everything)
        if CATALOGUE in everything:
            return self.catalogue(seen)
        if WATCH in everything:
            return self.watcher(seen)
        if OFFERS in everything:
            return self.offers(seen)
        match agent_name(seen):
            case "coordinator":
                return self.coordinator(seen)
            case "alice":
                return self.alice(seen)
            case "bob":
                return self.bob(seen)
            case "carla":
                return self.carla(seen)
            case _:
                return self.dan()

    def reply(self, seen: Seen, everything: str) -> Step:
        if CATALOGUE in everything:
            return says("Yes: it filters by SQL, so by each maker, too.", call("no_work_needed"))
        if OFFERS in everything:
            return says("Thank you. I read them, and keep what matters.", call("start_work"))
        if reply_count(seen) == 0:
            looks = call("look_into", what="alice"), call("read_file", path="GOAL.md")
            return says(*looks, call("check_board"))
        return says(
            "Yes. I put it into the comparison as three figures for each card:\n\n"
            "- what it draws under load,\n- what that costs in a year at **0.31 €/kWh**,\n"
            "- and whether a normal socket carries it.\n\nAlice and Bob look for them already.",
            call("no_work_needed"),
        )

    def looking_back(self, everything: str) -> Step:
        if "worth the human's time" not in everything and OFFERS in everything:
            return says(json.dumps({"insights": []}))
        if "worth the human's time" not in everything:
            learned = {
                "type": "technique",
                "content": "Shops change prices before nine; look at ten.",
                "confidence": 0.8,
                "work": 1,
            }
            return says(json.dumps({"insights": [learned]}))
        told = WATCH in everything
        verdict = {
            "score": 0.9 if told else 0.1,
            "title": "The 96 GB card is below $8,000" if told else "",
            "text": BRIEFING if told else "",
        }
        return says(json.dumps(verdict))

    def coordinator(self, seen: Seen) -> Step:
        match reply_count(seen):
            case 0:
                return says(
                    "Three makers are worth a look. One of us reads the prices of each, and a "
                    "fourth measures what they draw.",
                    call(
                        "send_message",
                        to="human",
                        content="On it. Alice takes NVIDIA, Bob AMD, Carla Intel; Dan looks at "
                        "power. I write the comparison when they are back, by this evening.",
                    ),
                    call(
                        "add_insight",
                        type="fact",
                        content="A normal socket carries 3.6 kW for hours; plan with 2.8.",
                    ),
                    *(call("spawn_worker", name=who) for who in ("alice", "bob", "carla", "dan")),
                    *(
                        call("create_work_node", title=title, task=task, assigned_to=who)
                        for who, title, task in (
                            ("alice", "NVIDIA: cards and prices", "Cards, memory, street prices."),
                            ("bob", "AMD: cards and prices", "Cards, memory, street prices."),
                            ("carla", "Intel: cards and prices", "Cards, memory, street prices."),
                            ("dan", "Power draw and cooling", "What each draws under load."),
                        )
                    ),
                )
            case 1:
                nodes = seen_created_nodes(seen)
                return says(
                    call(
                        "create_work_node",
                        title="Compare them on price and power",
                        task="One table, one page.",
                        depends_on=nodes,
                        acceptance=["A table with a row for each card", "Sources for every price"],
                    ),
                    call("start_stage", name="research", nodes=nodes),
                )
            case _:
                return says(call("start_stage", name="research"))

    def alice(self, seen: Seen) -> Step:
        match reply_count(seen):
            case 0:
                return says(
                    "I begin with what shops ask for it.",
                    call("write_file", path="nvidia.md", content=NVIDIA),
                    call("write_file", path="cards.csv", content=CSV),
                    call("read_file", path="nvidia.md"),
                )
            case 1:
                return says(
                    call(
                        "ask_human",
                        question="Should I count used cards? A used A100 with 80 GB costs about "
                        "$4,200, half of a new RTX PRO 6000, but without a warranty.",
                        options=["New ones only", "Used ones too", "Used, with a warranty"],
                    )
                )
            case _:
                return says(call("publish", summary="NVIDIA: the RTX PRO 6000, about $8,500."))

    def bob(self, seen: Seen) -> Step:
        if reply_count(seen) == 0:
            return says(call("bash", command="curl -sL shops.example/amd | grep -i mi300 | head"))
        return says(call("publish", summary="AMD: the MI300X, about $12,000."))

    def carla(self, seen: Seen) -> Step:
        match reply_count(seen):
            case 0:
                return says(
                    call("write_file", path="intel.md", content="# Intel\n\nGaudi 3: $9,500.\n"),
                    call("read_file", path="nothing-here.md"),
                )
            case 1:
                return says(
                    call(
                        "send_message",
                        to="coordinator",
                        content="Intel sells Gaudi 3 only in servers of eight. Out of question.",
                    )
                )
            case _:
                return says(call("publish", summary="Intel: nothing one can buy singly."))

    def dan(self) -> Step:
        words = (
            "The data sheets say 600 W and 750 W, but what counts is the draw at the socket. "
            "I take the figures of three reviews and weigh them by how long they ran"
        )
        return Stall(after_bytes=3_000, then=says(words))  # it stays in the middle of a reply

    def catalogue(self, seen: Seen) -> Step:
        match reply_count(seen):
            case 0:
                return says(
                    call("write_file", path="report.md", content=REPORT),
                    call("write_file", path="bench/results.csv", content=CSV),
                    call("memory_write", path="databases.md", content="# Databases\n\nHNSW wins."),
                )
            case _:
                return says(call("finish", summary=REPORT))

    def offers(self, seen: Seen) -> Step:
        """Keep what an attached file says: all of it then holds a stranger's words."""
        if FORWARDED not in str(seen.messages):
            return says(call("finish", summary="Ready. Forward me the offers as they come."))
        if reply_count(seen) == 1:
            return says(call("bash", command=CHECK_STOCK, network="open"))  # waits for the decision
        if reply_count(seen) > 1:
            return says(
                call(
                    "finish",
                    summary="One offer matters: **Nordlicht** sells the 96 GB card for **$7,890** "
                    "until Friday. I keep it with the others, and look again on Friday.",
                )
            )
        return says(
            "I keep the prices, and note who sells what until when.",
            call(
                "memory_write",
                path="knowledge/offers.md",
                content="# Offers of week 47\n\nNordlicht: RTX PRO 6000, $7,890, until Friday.\n"
                "Bitfabrik: MI300X, $11,400, no end given.",
            ),
            call(
                "memory_write",
                path="preferences/shops.md",
                content="Nordlicht delivers first, so ask there before all others.",
            ),
            call(
                "memory_write",
                path="knowledge/prices.md",
                content="Nordlicht sold the RTX PRO 6000 for $7,890 in week 47.",
            ),
            call(
                "write_file",
                path="PLAN.md",
                content="# Plan\n\n- [x] offers of week 47\n- [ ] Friday: is it still $7,890?\n",
            ),
            call(
                "schedule",
                type="delayed",
                config={"delay_seconds": 4 * 86_400},
                action="Look whether Nordlicht still sells the card for $7,890.",
            ),
            call("bash", command=CHECK_STOCK, network="open"),
        )

    def watcher(self, seen: Seen) -> Step:
        if FIRST_LOOK in seen.messages[0].text:
            return says(call("finish", summary="Two shops ask less than $8,000."))
        match reply_count(seen):
            case 0:
                return says(
                    call(
                        "schedule",
                        type="scheduled",
                        config={"cron": "0 10 * * MON-FRI", "zone": "Europe/Berlin"},
                        action="Look at the prices of the three shops and note them.",
                    ),
                    # No person asked for the work of a trigger, so its news is a briefing.
                    call(
                        "schedule",
                        type="on_event",
                        config={"event_pattern": "node.completed", "max_fires": 1},
                        action=FIRST_LOOK,
                    ),
                    call("memory_write", path="prices.md", content="# Prices\n\n96 GB: $8,900"),
                )
            case _:
                return says(call("finish", summary="Three shops are watched from tomorrow on."))


async def _until(desk: Desk, path: str, holds: Callable[[Any], bool]) -> Any:
    """Repeat the request after each event of any team until the condition holds."""
    async with (
        asyncio.timeout(60),
        desk.up.http.ws_connect(f"{desk.origin}/api/events") as line,
    ):
        await line.send_json({"op": "subscribe", "cursors": {}})
        while not holds(found := await desk.up.ask("GET", path)):
            await line.receive()
        return found


def _kinds(inbox: Any) -> set[str]:
    return {item["message"]["kind"] for item in inbox["items"]}


def _is_answered(said: Any) -> bool:
    return any("0.31" in message["text"] for message in said)


def _is_research_running(jobs: Any) -> bool:
    # The job waits for its reader, which is in the middle of a reply.
    return any(job["is_research"] and job["state"] == "waiting" for job in jobs)


def _has_all_kinds(digest: Any) -> bool:
    kinds = {entry["kind"] for team in digest for entry in team["entries"]}
    return kinds >= {"ask", "pending", "unverified", "file", "trigger"}


async def forward_offers(desk: Desk) -> dict[str, Any]:
    """Create a team, forward it a file, and wait until there is something of each kind to decide.

    Return the team.
    """
    team = await desk.found(OFFERS, name="Offers", trust="standard")
    await _until(desk, "/inbox", lambda inbox: "Ready. Forward" in str(inbox))
    data = base64.b64encode(b"shop,card,usd,until\nNordlicht,RTX PRO 6000,7890,Friday\n").decode()
    file = {"name": OFFER_FILE, "media_type": "text/csv", "data": data}
    said = {"message": FORWARDED, "attachments": [file]}
    await desk.up.ask("POST", f"/agents/{team['coordinator_id']}/send", said)
    await _until(desk, "/inbox/digest", _has_all_kinds)
    for kind, pattern in (("read", "*.nordlicht-hardware.example"), ("tool", "web_search")):
        grant = {"kind": kind, "pattern": pattern}
        await desk.up.ask("POST", f"/teams/{team['id']}/grants", grant)
    return team


async def edit_message(desk: Desk, team: dict[str, Any]) -> None:
    """Ask the team something, and edit it before all has been said."""
    lead = team["coordinator_id"]
    first = await desk.up.ask("POST", f"/agents/{lead}/send", {"message": "Does it filer by make?"})
    said = {"message": "Does it filter by maker?", "edits": first["id"]}
    await desk.up.ask("POST", f"/agents/{lead}/send", said)
    await _until(desk, f"/agents/{lead}/conversation", lambda said: "by each maker" in str(said))


async def begin(desk: Desk) -> dict[str, Any]:
    """Create the teams and wait until every screen has content; return the main team."""
    offers = await forward_offers(desk)
    done = await desk.found(CATALOGUE, name="Vector search")
    watch = await desk.found(WATCH, name="Card prices", mode="infinite")
    rules = [{"tool": "bash", "action": "ask"}]
    chips = await desk.found(CHIPS, name="AI accelerators", permissions=rules, budget={"usd": 5})
    wanted = {"question", "approval", "briefing", "result"}
    await _until(desk, "/inbox", lambda inbox: _kinds(inbox) >= wanted)
    await edit_message(desk, done)
    lead = chips["coordinator_id"]
    said = {"message": "Please say what each of them draws, too.", "mode": "send"}
    await desk.up.ask("POST", f"/agents/{lead}/send", said)
    await _until(desk, f"/agents/{lead}/conversation", _is_answered)
    await desk.up.ask("POST", f"/agents/{lead}/research", {"goal": RETURNS})
    await _until(desk, f"/teams/{chips['id']}/jobs", _is_research_running)
    for content in ("Has one socket of 16 A in the lab.", "Likes figures before words."):
        await desk.up.ask("POST", f"/agents/{lead}/memories", {"content": content})
    return chips | {"done": done["id"], "watch": watch["id"], "offers": offers["id"]}
