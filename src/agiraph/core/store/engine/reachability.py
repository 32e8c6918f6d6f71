"""Reachability: tells a PostgreSQL that is down from settings that can never work."""

# asyncpg has no types of its own.
# pyright: basic

import asyncpg

from agiraph.core.domain.errors import Misconfigured, StoreUnavailable

CONNECT_TIMEOUT_S = 10
CONNECTION_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
)
"""asyncpg's errors for a server that is down, starting, stopping or out of connections."""
_REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.ClientConfigurationError,
    ValueError,
)
"""asyncpg's errors that only another setting fixes: user, password, database, address."""


async def check(url: str) -> None:
    """Connect once. Raise `StoreUnavailable` if waiting may help, `Misconfigured` if it will not.

    Uses asyncpg: libpq tells a wrong password from a full server only by the text of its message.
    """
    try:
        connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S)
    except _REFUSED as error:
        raise Misconfigured(
            f"PostgreSQL refused the connection: {error}. Check user, password, host and database "
            "in AGIRAPH_DATABASE_URL."
        ) from error
    except CONNECTION_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise StoreUnavailable(f"PostgreSQL cannot be reached: {reason}") from error
    await connection.close(timeout=1)
