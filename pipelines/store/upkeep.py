"""Tidies the database: tables with many dead rows, evaluations that nobody looks at again.

Knows tables and their statistics; not when it is time.
"""

from collections.abc import Sequence

from psycopg import sql

from pipelines.store.database.connection import Database, autocommit, statement

# Postgres' own autovacuum begins at the same share, but a crowded or switched off one does not.
DEAD_LEAST, DEAD_SHARE = 1_000, 0.2
PAST_DAYS = 30  # as long as an update can be undone


class Upkeep(Database):
    """What is done now and then."""

    def tables_to_vacuum(self, indexes: Sequence[int], least: int = DEAD_LEAST) -> list[str]:
        """Return the tables of which a fifth, and more than `least` rows, is dead; chunk tables of `indexes` alone."""
        own = [f"chunk_{index}" for index in indexes]
        rows = self._all("tables_to_vacuum", {"least": least, "share": DEAD_SHARE, "own": own})
        return [row["name"] for row in rows]

    def vacuum(self, table: str) -> None:
        """Vacuum and analyse a table; readers and writers go on."""
        with self._connection() as connection, autocommit(connection):  # no transaction may vacuum
            connection.execute(statement("vacuum_table", table=sql.Identifier(table)))

    def forget_evaluations(self, collection: str, dataset: str, kept: Sequence[int]) -> int:
        """Delete the evaluations of a collection on a data set, but for those with the ids `kept`; return how many."""
        return self._run("forget_evaluations", {"collection": collection, "dataset": dataset, "kept": list(kept)})

    def forget_past(self, collection: str) -> tuple[int, int]:
        """Delete runs that began PAST_DAYS ago, and pages that left the site as long ago; return how many of each."""
        values = {"collection": collection, "days": PAST_DAYS}
        return self._run("forget_runs", values), self._run("forget_gone_pages", values)
