"""Sizes: the most tokens that each prompt may have; a token is four bytes."""

REQUESTS: dict[str, int] = {
    "coordinator": 3500,
    "worker": 2000,
    "lean_coordinator": 1500,
    "lean_worker": 1500,
    "reply": 2300,
    "lean_reply": 1500,
    "text_worker": 2500,
    "single": 2000,
    "public": 2000,
    "review": 2000,
    "reflection": 2000,
}
"""The first request of a thread with all that is sent: tools, system prompt and task. A specialist
counts as a worker. A reply is measured before there is any conversation or work."""
BOARD_IN_REPLY = 500
"""What the work of a small team may add to a reply."""

TEXTS: dict[str, int] = {
    "briefing": 140,
    "cli_task": 260,
    "compact": 150,
    "compacted": 80,
    "compaction_flush": 90,
    "coordinator": 360,
    "conversation_summary": 190,
    "cycle": 140,
    "heartbeat": 140,
    "lean": 200,
    "lean_coordinator": 340,
    "maintenance": 200,
    "promise": 140,
    "public": 270,
    "reader": 120,
    "reflection": 275,
    "reply": 400,
    "reply_lean": 220,
    "research_brief": 200,
    "research_gaps": 150,
    "research_reader": 310,
    "research_support": 110,
    "research_writing": 270,
    "review": 120,
    "rules": 240,
    "single": 80,
    "text_tool_calls": 520,
    "woken": 140,
    "worker": 120,
}
"""The words of a file, without the facts that are filled in."""
SPECIALIST = 150
"""The words of a specialist's file behind its front matter."""
