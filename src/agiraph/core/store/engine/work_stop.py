"""Work stop: the row that says that all work is stopped, until a person resumes it."""

from agiraph.core.store.tx import Tx

NAME = "work_stopped"
"""The row's name in the table `about`. While it exists, no node is claimed."""
IS_STOPPED = f"exists (select 1 from about where name = '{NAME}')"
"""A condition for queries, which costs no statement of its own."""


def find(tx: Tx) -> str | None:
    """Return what was noted when all work was stopped; None if it is not stopped."""
    row = tx.one("select value from about where name = :name", name=NAME)
    return None if row is None else row[0]


def begin(tx: Tx, noted: str) -> bool:
    """Stop all work; return False if it is stopped already."""
    # Of two requests at the same time, the second waits for the row of the first and adds none.
    sql = "insert into about (name, value) values (:name, :value) on conflict (name) do nothing"
    return tx.run(sql, name=NAME, value=noted) == 1


def end(tx: Tx) -> bool:
    """Let work go on; return False if it was not stopped."""
    return tx.run("delete from about where name = :name", name=NAME) == 1
