"""Defines how a database fails, and translates its driver's errors in one place."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg_pool import PoolTimeout


class StoreUnavailable(ConnectionError):
    """The database can't be reached, or ended the session; the same call may succeed later."""


class TransactionConflict(StoreUnavailable):
    """Postgres aborted a transaction because of another one; nothing was changed."""


class DatabaseFull(StoreUnavailable):
    """The database is out of space; nothing was changed. Waiting does not help."""


class StatementBrokenOff(StoreUnavailable):
    """Postgres canceled a statement, usually for a timeout; nothing was changed. Waiting does not help."""


class UnusableDatabase(RuntimeError):
    """The database can be reached but not used: pgvector is missing or too old, or the schema does not match."""


class NotAllowed(UnusableDatabase):
    """The database can be read, but the role or the server does not allow the action."""


def is_worth_waiting(error: BaseException) -> bool:
    """Return whether the same call may succeed later."""
    return isinstance(error, StoreUnavailable) and not isinstance(error, DatabaseFull | StatementBrokenOff)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn the driver's errors into StoreUnavailable or the subclass that fits.

    Raises NotAllowed for actions that the database forbids.
    """
    try:
        yield
    except psycopg.errors.ProgramLimitExceeded:
        raise  # a retry would exceed it again
    except psycopg.errors.DiskFull as error:
        raise DatabaseFull(
            f"the disk of the database is full: {error.diag.message_primary}. Nothing is lost: free space there "
            "(`raydex prune` drops old indexes, if there are any), then try again"
        ) from error
    except psycopg.errors.QueryCanceled as error:
        raise StatementBrokenOff(
            f"the database canceled a statement: {error}. If that was a timeout, raise `statement_timeout` of the "
            "role (`alter role NAME set statement_timeout = '10min'`), then try again"
        ) from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise NotAllowed(
            f"the database can only be read: {error.diag.message_primary}. If it is a replica, use the primary server "
            "in DATABASE_URL; if not, an administrator or a full disk has set `default_transaction_read_only`"
        ) from error
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidSchemaName) as error:
        raise NotAllowed(
            f"the database does not allow this: {error.diag.message_primary}. Give the role of DATABASE_URL the rights "
            "(`raydex doctor` names the missing ones), or let the owner of the database run the command"
        ) from error
    except PoolTimeout as error:
        raise StoreUnavailable(
            "the database gave no connection in time: `raydex doctor` says why. A connection pooler in front of it "
            "needs two sessions of the server or more, as a run keeps one until it ends"
        ) from error
    except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as error:
        raise TransactionConflict(f"transactions were in each other's way: {error}; try again") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreUnavailable(f"the database can't be reached: {error}") from error
