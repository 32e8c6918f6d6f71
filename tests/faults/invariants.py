"""Invariants: checks at the moment of a kill, and after the recovery from it."""

import hashlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.home.layout import Home

FOREIGN = "what a stranger wrote"
"""Words that are in no kept file without a label."""
WHOLE_FILES = {"half and whole", "half or whole", "the draft\n"}
"""Every content that a scenario writes under a final name."""


EFFECTS = ".effects"
"""The file to which commands write their effects, in their own folder: they can write nowhere
else."""


STOPPED = "stopped"
"""The notes in the ledger about nodes that the scenario cancels."""


class Ledger:
    """A file of outside effects, beside the home: no crash of the runtime can damage it."""

    def __init__(self, home: Path) -> None:
        self.path = home.parent / "ledger"
        self._home = home

    def note(self, kind: str, what: str = "") -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, f"{kind} {what}\n".encode())
        os.close(file)

    def all(self, kind: str) -> list[str]:
        files = [self.path, *self._home.glob(f"teams/*/nodes/*/scratch/{EFFECTS}")]
        lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
        return [line.partition(" ")[2] for line in lines if line.partition(" ")[0] == kind]


def database(home: Path) -> sqlite3.Connection:
    """Open the home's database, with views of turns by thread and of events by team."""
    connection = sqlite3.connect(home / "agiraph.db")
    connection.row_factory = sqlite3.Row
    if connection.execute("select 1 from sqlite_master where name = 'events'").fetchone():
        connection.execute(
            "create temp view journal as select h.id as thread_id, t.place & 4294967295 as seq, t.*"
            " from turns t join threads h on h.number = t.place >> 32"
        )
        connection.execute(
            "create temp view story as select m.id as team_id, e.place & 1099511627775 as seq, e.*"
            " from events e join teams m on m.number = e.place >> 40"
        )
    return connection


def at_kill(home: Path) -> Iterator[str]:
    """Check what other processes can see at any moment: I1, I3, I7, I8, I15 to I17."""
    if not (home / "agiraph.db").exists():
        if Ledger(home).all("acknowledged"):
            yield "I1: something was acknowledged, but there is no database"
        return
    with closing(database(home)) as db:
        [verdict] = db.execute("pragma integrity_check").fetchone()
        if verdict != "ok":
            yield f"I15: {verdict}"
        if not db.execute("select 1 from sqlite_master where name = 'nodes'").fetchone():
            if Ledger(home).all("acknowledged"):
                yield "I1: something was acknowledged, but there are no tables"
            return
        yield from _acknowledged(db, home)
        yield from _dense(db)
        yield from _published(db, home)
        yield from _ends_together(db)
        yield from _labelled_files(db, home)
    yield from _whole_files(home)


def after_recovery(home: Path) -> Iterator[str]:
    """Check the final state: the rest of I1 to I16."""
    yield from at_kill(home)
    with closing(database(home)) as db:
        yield from _ended(db, home)
        yield from _answered_calls(db, home)
        yield from _messages_once(db)
        yield from _effects(db, home)
        yield from _money(db, home)
        yield from _delegated_once(db)
        yield from _ends_reported(db)
    yield from _processes(home)
    yield from _leftovers(home)


def fingerprint(home: Path) -> str:
    """Hash everything that a restart with nothing to do must not change (I13)."""
    digest = hashlib.sha256()
    with closing(database(home)) as db:
        tables = [r[0] for r in db.execute("select name from sqlite_master where type = 'table'")]
        for table in sorted(tables):
            for row in db.execute(f"select * from {table}"):
                digest.update(repr(tuple(row)).encode())
    for file in sorted((home / "teams").rglob("*")):
        if file.is_file():
            digest.update(str(file.relative_to(home)).encode() + file.read_bytes())
    return digest.hexdigest()


def _acknowledged(db: sqlite3.Connection, home: Path) -> Iterator[str]:
    for line in Ledger(home).all("acknowledged"):
        table, _, identity = line.partition(" ")
        column = "in_reply_to" if table == "answers" else "id"
        table = "messages" if table == "answers" else table
        if not db.execute(f"select 1 from {table} where {column} = ?", (identity,)).fetchone():
            yield f"I1: {line} was acknowledged and is lost"


def _dense(db: sqlite3.Connection) -> Iterator[str]:
    for name, owner in (("journal", "thread_id"), ("story", "team_id")):
        for row in db.execute(
            f"select {owner} as o, min(seq) as a, max(seq) as b, count(*) as n"
            f" from {name} group by {owner}"
        ):
            if (row["a"], row["b"]) != (1, row["n"]):
                span = f"{row['n']} numbers from {row['a']} to {row['b']}"
                yield f"I3/I16: the {name} of {row['o']} has {span}"


def _published(db: sqlite3.Connection, home: Path) -> Iterator[str]:
    for row in db.execute(
        "select id, team_id, status, manifest, kind from nodes where lane = 'work'"
    ):
        folder = home / "teams" / row["team_id"] / "nodes" / row["id"]
        if (folder / "published").exists():
            node = Home.open(home).team(TeamId(row["team_id"])).node(NodeId(row["id"]))
            yield from (f"I7: {problem}" for problem in node.verify())
            on_disk = dict(node.manifest().files)
            if row["status"] == "completed" and json.loads(row["manifest"]) != on_disk:
                yield f"I7: the manifest of {row['id']} differs from its published files"
        # A review gives a verdict; research and its steps leave rows.
        elif row["status"] == "completed" and row["kind"] == "task":
            yield f"I7: {row['id']} is completed and has published nothing"


def _ends_together(db: sqlite3.Connection) -> Iterator[str]:
    """Check that a call that ends a node is answered in the transaction that ends it."""
    for row in db.execute(
        "select n.id, n.status from journal t join nodes n on n.id = t.node_id"
        " where t.role = 'tool' and t.text like 'Published: %' and n.status <> 'completed'"
    ):
        yield f"{row['id']} was submitted and is {row['status']}"


def _labelled_files(db: sqlite3.Connection, home: Path) -> Iterator[str]:
    """I17: a file that outlives its node has a label before it has foreign words."""
    rows = db.execute("select team_id, path from file_labels where label is not null")
    labelled = {f"{team}/{path}" for team, path in rows}
    for file in (home / "teams").rglob("*.md"):
        path = file.relative_to(home / "teams")
        is_kept = "nodes" not in path.parts and "unverified" not in path.parts
        if is_kept and FOREIGN in file.read_text() and str(path) not in labelled:
            yield f"I17: {path} holds foreign words without a label"


def _whole_files(home: Path) -> Iterator[str]:
    for file in home.glob("teams/*/nodes/*/scratch/draft.md"):
        if file.read_text() not in WHOLE_FILES:
            yield f"I8: {file.name} is torn: {file.read_text()!r}"


def _interrupted_programs(db: sqlite3.Connection) -> set[str]:
    """Return the nodes whose program a kill interrupted: they fail, their effects are unknown."""
    failed = db.execute("select data from story where type = 'node.failed'")
    told = [json.loads(row["data"]) for row in failed]
    return {data["node_id"] for data in told if "The program was cut off" in data["result"]}


def _ended(db: sqlite3.Connection, home: Path) -> Iterator[str]:
    interrupted, stopped = _interrupted_programs(db), Ledger(home).all(STOPPED)
    for row in db.execute("select id, kind, status, stop_reason, waiting_reason from nodes"):
        if row["id"] in interrupted and row["status"] == "failed":
            continue
        if (row["kind"], row["stop_reason"]) == ("research", "not_reached"):
            continue  # it found nothing, and its report says so
        if row["status"] not in ("completed", "failed", "cancelled"):
            yield f"{row['id']} is left {row['status']}: {row['waiting_reason']}"
        elif row["status"] == "cancelled" and row["id"] in stopped:
            continue
        elif row["status"] != "completed":
            yield f"{row['id']} {row['status']}: {row['stop_reason']}"
    for row in db.execute("select * from waits"):
        yield f"a wait is left: {dict(row)}"


def _answered_calls(db: sqlite3.Connection, home: Path) -> Iterator[str]:
    """I4, I16: each call has one answer and each answer an event, unless the scenario stopped the
    node or its turns were removed."""
    pruned = {row[0] for row in db.execute("select node_id from threads where pruned_at <> ''")}
    stopped = Ledger(home).all(STOPPED)
    answers = Counter(
        (r["thread_id"], r["ref"]) for r in db.execute("select * from journal where role = 'tool'")
    )
    for row in db.execute("select thread_id, node_id, calls from journal where role = 'assistant'"):
        for call in json.loads("[]" if row["node_id"] in stopped else row["calls"] or "[]"):
            if answers[row["thread_id"], call["id"]] != 1:
                yield f"I4: {call['name']} has {answers[row['thread_id'], call['id']]} answers"
    answered = Counter(
        (r["node_id"], r["ref"]) for r in db.execute("select * from journal where role = 'tool'")
    )
    told: Counter[tuple[str, str]] = Counter()
    for row in db.execute("select data from story where type = 'tool.result'"):
        data = json.loads(row["data"])
        told[data["node_id"], data["call_id"]] += data["node_id"] not in pruned
    if +answered != +told:
        silent, invented = answered - told, told - answered
        yield f"I16: answers without event {silent}, events without answer {invented}"


def _messages_once(db: sqlite3.Connection) -> Iterator[str]:
    """I2, I6, I11: every message is delivered once, in order, and every answer to its question."""
    texts = Counter(
        (r["recipient"], r["kind"], r["text"]) for r in db.execute("select * from messages")
    )
    yield from (f"I6: {key} was sent {n} times" for key, n in texts.items() if n != 1)
    heard: dict[str, list[str]] = {}
    for r in db.execute("select thread_id, ref from journal where ref like 'msg_%' order by seq"):
        heard.setdefault(r["thread_id"], []).append(r["ref"])
    every = Counter(ref for refs in heard.values() for ref in refs)
    yield from (f"I2: {ref} was delivered {n} times" for ref, n in every.items() if n != 1)
    for refs in heard.values():
        if refs != sorted(refs):
            yield f"I2: delivered out of order: {refs}"
    for row in db.execute("select * from messages where kind = 'message' and sender = 'human'"):
        task = db.execute("select 1 from nodes where task like ?", (f"%{row['text']}%",)).fetchone()
        asked = db.execute(
            "select 1 from journal where text like ?", (f"%{row['text']}%",)
        ).fetchone()
        if row["seen_at"] is None or not (task or asked):
            yield f"I2: {row['text']!r} was never delivered"
    for row in db.execute(
        "select q.text as question, a.text as answer from messages q"
        " join messages a on a.in_reply_to = q.id where q.kind = 'question'"
    ):
        if row["answer"] != f"answer to {row['question']}":
            yield f"I11: {row['question']!r} got {row['answer']!r}"
    for row in db.execute("select t.text from journal t where t.text like 'answer to %'"):
        if not db.execute(
            "select 1 from messages where text = ? and kind = 'answer'", (row["text"],)
        ).fetchone():
            yield f"I11: {row['text']!r} is in a thread, but in no answer"


def _effects(db: sqlite3.Connection, home: Path) -> Iterator[str]:
    """I5: a command ran at most once per call, and at least once per call that reports success."""
    ran = Counter(Ledger(home).all("effect"))
    asked: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for row in db.execute("select * from journal where role = 'assistant'"):
        for call in json.loads(row["calls"] or "[]"):
            if call["name"] != "bash":
                continue
            token = call["arguments"]["command"].split("effect ")[1].split("'")[0].strip()
            asked[token] += 1
            answer = db.execute(
                "select text from journal where role = 'tool' and thread_id = ? and ref = ?",
                (row["thread_id"], call["id"]),
            ).fetchone()
            said[token] += answer is not None and answer["text"].startswith("[exit code 0]")
    for token in asked | ran:
        if ran[token] > asked[token]:
            yield f"I5: {token} was called {asked[token]} times and ran {ran[token]} times"
        if said[token] > ran[token]:
            yield f"I5: {token} reported success {said[token]} times and ran {ran[token]} times"


def _delegated_once(db: sqlite3.Connection) -> Iterator[str]:
    """Check that each delegated task has exactly one node, and a refused one none."""
    given: Counter[str] = Counter()
    refused = {
        (row["thread_id"], row["ref"])
        for row in db.execute("select thread_id, ref, text, extra from journal where role = 'tool'")
        # A task that was given and failed is answered with its end, which begins with this mark.
        if json.loads(row["extra"] or "{}").get("failed") and not row["text"].startswith("[Task]")
    }
    for row in db.execute("select thread_id, node_id, calls from journal where role = 'assistant'"):
        for made in json.loads(row["calls"] or "[]"):
            is_refused = (row["thread_id"], made["id"]) in refused
            if made["name"] in ("assign_task", "create_work_node") and not is_refused:
                given[row["node_id"]] += 1
    for row in db.execute(
        "select parent_id, count(*) as n from nodes where parent_id is not null"
        " and is_step = 0 group by parent_id"
    ):
        if row["n"] != given[row["parent_id"]]:
            said = f"{row['parent_id']} delegated {given[row['parent_id']]} tasks"
            yield f"{said} and has {row['n']} children"


def _ends_reported(db: sqlite3.Connection) -> Iterator[str]:
    """Check that each delegated task's end reached its creator, and by one message at most."""
    for row in db.execute(
        "select n.id, n.creator_id, n.assignee_id from nodes n join agents a on a.id = n.creator_id"
        " where n.status in ('completed', 'failed') and n.creator_id <> n.assignee_id"
        " and n.parent_id is not null and n.is_step = 0"
    ):
        read = db.execute(
            "select count(*) from journal t join threads h on h.id = t.thread_id"
            " where h.agent_id = ? and t.text like '%a task of yours%' and t.text like ?",
            (row["creator_id"], f"%Id: {row['id']}%"),
        ).fetchone()[0]
        sent = db.execute(
            "select count(*), sum(seen_at is null) from messages where node_id = ? and"
            " kind in ('result', 'failure') and recipient = ?",
            (row["id"], row["creator_id"]),
        ).fetchone()
        if read == 0 and not sent[1]:
            yield f"the end of {row['id']} never reached its creator"
        if sent[0] > 1 + _extensions(db, row["id"]):
            yield f"the end of {row['id']} was reported {sent[0]} times"


def _extensions(db: sqlite3.Connection, node_id: str) -> int:
    """Return how often a node went on after its end, which is then reported again."""
    told = db.execute(
        "select data from story where type = 'node.extended' or (type in"
        " ('node.assigned', 'node.changed') and json_extract(data, '$.by') is not null)"
    )
    return sum(json.loads(row["data"])["node_id"] == node_id for row in told)


def _money(db: sqlite3.Connection, home: Path) -> Iterator[str]:
    """I12: every model call is charged, and a crash repeats at most one per queue."""
    made = len(Ledger(home).all("llm"))
    crashes = max(0, len(Ledger(home).all("life")) - 1)
    [turns] = db.execute("select count(*) from journal where role = 'assistant'").fetchone()
    [paid] = db.execute("select coalesce(sum(calls + lost), 0) from spend").fetchone()
    if paid < made:
        yield f"I12: {made} model calls were made and {paid} charged"
    [queues] = db.execute(
        "select count(*) from (select distinct agent_id, kind from threads)"
    ).fetchone()
    if made > turns + crashes * queues:
        yield f"I12: {made} calls for {turns} replies and {crashes} crashes"
    for row in db.execute("select thread_id, max(seq), role, ref from journal group by thread_id"):
        if (row["role"], row["ref"]) == ("intent", "thinking"):
            yield f"I12: money is still reserved for {row['thread_id']}"


def _processes(home: Path) -> Iterator[str]:
    """I14: no process of ours outlives its owner."""
    marker = str(home).encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker in line:
                yield f"I14: process {entry.name} is left: {line!r}"


def _leftovers(home: Path) -> Iterator[str]:
    for file in home.glob("teams/*/nodes/*/*"):
        kept = ("_task.md", "_context.json", "_inbox.md", "_outbox.md")  # the mailbox of a program
        if file.name.startswith("_replaced-"):
            continue  # what a node had published before it was extended
        if file.name not in ("_spec.md", "_refs.json", "scratch", "published", *kept):
            yield f"{file.name} is left in a node's folder"
