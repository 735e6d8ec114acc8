"""The database schema as numbered migrations, and the code that applies them.

A change to a table is one more file NNN_name.sql here, with the next number; a file that was released never changes.
"""
