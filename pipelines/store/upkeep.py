"""Tidies the database: vacuums tables with many dead rows, deletes old evaluations, runs and pages.

This module knows tables and their statistics, but not when to run.
"""

from collections.abc import Sequence

from psycopg import sql

from pipelines.store.database.connection import Database, autocommit, statement

# Postgres' autovacuum starts at the same share, unless it is overloaded or switched off.
DEAD_LEAST, DEAD_SHARE = 1_000, 0.2
PAST_DAYS = 30  # an update can be undone for this long


class Upkeep(Database):
    """Periodic maintenance."""

    def tables_to_vacuum(self, indexes: Sequence[int], least: int = DEAD_LEAST) -> list[str]:
        """Return the tables in which a fifth of the rows, and more than `least`, are dead.

        Only the chunk tables of `indexes` are included.
        """
        own = [f"chunk_{index}" for index in indexes]
        rows = self._all("tables_to_vacuum", {"least": least, "share": DEAD_SHARE, "own": own})
        return [row["name"] for row in rows]

    def vacuum(self, table: str) -> None:
        """Vacuum and analyze a table, without blocking readers and writers."""
        with self._connection() as connection, autocommit(connection):  # vacuum can't run in a transaction
            connection.execute(statement("vacuum_table", table=sql.Identifier(table)))

    def forget_evaluations(self, collection: str, dataset: str, kept: Sequence[int]) -> int:
        """Delete the evaluations of a collection on a data set, except the ids in `kept`; return how many."""
        return self._run("forget_evaluations", {"collection": collection, "dataset": dataset, "kept": list(kept)})

    def forget_past(self, collection: str) -> tuple[int, int]:
        """Delete runs that began over PAST_DAYS ago, and pages that left the site that long ago.

        Return how many of each.
        """
        values = {"collection": collection, "days": PAST_DAYS}
        return self._run("forget_runs", values), self._run("forget_gone_pages", values)
