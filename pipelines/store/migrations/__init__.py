"""The database schema as numbered migrations, and the code that applies them.

To change a table, add a file NNN_name.sql here with the next number; a released file never changes.
"""
