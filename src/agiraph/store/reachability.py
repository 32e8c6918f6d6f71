"""Reaching: whether a PostgreSQL can be reached, will be soon, or never with these settings."""

# asyncpg has no types of its own.
# pyright: basic

import asyncpg

from agiraph.domain.errors import Misconfigured, StoreUnavailable

CONNECT_SECONDS = 10
CONNECTION_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
)
"""What asyncpg raises when a server is not there, starts or stops, or has no connection left."""
_REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.ClientConfigurationError,
    ValueError,
)
"""What it raises when only another setting helps: user, password, database, address."""


async def check(url: str) -> None:
    """Connect once. Raise `StoreUnavailable` if waiting may help, `Misconfigured` if it will not.

    asyncpg is asked, since libpq tells a wrong password from a full server by its words alone.
    """
    try:
        connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS)
    except _REFUSED as error:
        raise Misconfigured(
            f"PostgreSQL does not let us in: {error}. Check user, password, host and database in "
            "AGIRAPH_DATABASE_URL."
        ) from error
    except CONNECTION_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise StoreUnavailable(f"PostgreSQL cannot be reached: {reason}") from error
    await connection.close(timeout=1)
