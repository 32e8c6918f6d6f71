"""PostgreSQL errors: psycopg's exceptions, translated into the project's own."""

import contextlib
from collections.abc import Generator

import psycopg
from psycopg import errors as pg

from agiraph.core.domain.errors import (
    AgiraphError,
    Refused,
    StoreFull,
    StoreLocked,
    StoreUnavailable,
)


def explain(error: psycopg.Error) -> AgiraphError | None:
    """Return the project's error for one of psycopg; None if the statement itself is wrong."""
    first_line = str(error).strip().partition("\n")[0]
    # These, and `DiskFull`, are OperationalErrors too, so the order of the tests matters.
    if isinstance(error, (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable)):
        return StoreLocked(f"Other transactions hold the locks: {first_line}")
    if isinstance(error, pg.DiskFull):
        return StoreFull("The database server's disk is full. Free space there; work then resumes.")
    # The server ends a session that idles in a transaction (`postgres.IDLE_SECONDS`); for psycopg
    # that is an InternalError.
    if isinstance(error, (psycopg.OperationalError, pg.IdleInTransactionSessionTimeout)):
        return StoreUnavailable(f"The database cannot be reached: {first_line}")
    if isinstance(error, psycopg.DataError):
        return Refused(f"The database refused a value: {first_line}")
    return None


@contextlib.contextmanager
def refuse_rejected_rows() -> Generator[None]:
    """Raise `Refused` where PostgreSQL rejects a row of a backup, such as by a constraint."""
    try:
        yield
    except psycopg.Error as error:
        first_line = str(error).partition("\n")[0]
        raise Refused(
            f"The database does not take the rows of the backup ({first_line}). Nothing was"
            " changed; use another backup."
        ) from error
