"""Copies of a collection: its pages under another name, to be indexed with other settings."""

from pipelines.store.collections.catalog import COPY_MARK, Collections, is_copy
from pipelines.store.database.connection import Connection, statement


class Copies(Collections):
    """Copies of collections."""

    def copy_pages(self, collection: str, copy: str, run: int) -> int:
        """Give `copy` the current pages of `collection`, as if `run` had seen them; return how many."""
        values = {"collection": collection, "copy": copy, "run": run}

        def work(connection: Connection) -> int:
            copied = connection.execute(statement("copy_pages"), values).rowcount
            gone = {"collection": copy, "run": run, "prefix": "", "error": f"is no longer a page of {collection}"}
            connection.execute(statement("mark_unseen"), gone)
            return copied

        return self._do(work)

    def copies(self, collection: str) -> list[str]:
        """Return the names of the copies of a collection."""
        return [row["name"] for row in self._all("copies", {"collection": collection, "mark": COPY_MARK})]

    def drop_copy(self, copy: str) -> list[int]:
        """Drop a copy with its indexes; return their ids. Raises ValueError if it is not a copy."""
        if not is_copy(copy):
            raise ValueError(f"{copy!r} is no copy (its name has no {COPY_MARK!r}): nothing is dropped")
        return self.drop([copy])


def copy_name(collection: str, fingerprint: str) -> str:
    """Return the name of the copy of `collection` whose index has this fingerprint."""
    return f"{collection}{COPY_MARK}{fingerprint[:12]}"
