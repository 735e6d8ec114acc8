"""Gives a database to a role that owns its tables and has no other rights.

That role can neither run programs on the database's machine (`copy … to program`) nor read its files.
"""

from psycopg import sql
from psycopg.rows import dict_row

from pipelines.store.database.address import conninfo
from pipelines.store.database.connection import Connection, statement
from pipelines.store.database.errors import translate_errors


def give_database(superuser_url: str, owner: str, password: str) -> None:
    """Make the role `owner` the owner of the database in a superuser's URL, and of every table in it.

    The role is created if it does not exist, and loses all other rights. pgvector is created or updated. It is all one
    transaction. Raises StoreUnavailable.
    """
    role = {"owner": sql.Identifier(owner), "password": sql.Literal(password)}
    with translate_errors(), Connection.connect(conninfo(superuser_url), row_factory=dict_row) as connection:
        connection.execute(statement("lock_roles"))
        if connection.execute(statement("find_role"), {"owner": owner}).fetchone() is None:
            connection.execute(statement("create_role", **role))
        connection.execute(statement("restrict_role", **role))
        connection.execute(statement("own_database", database=sql.Identifier(connection.info.dbname), **role))
        for row in connection.execute(statement("tables_of_others"), {"owner": owner}).fetchall():
            connection.execute(statement("own_table", table=sql.Identifier(row["schema"], row["name"]), **role))
        connection.execute(statement("create_extension"))
        connection.execute(statement("update_extension"))
