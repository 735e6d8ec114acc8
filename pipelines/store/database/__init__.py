"""The base of the store: a database's address, its connections, its errors, its JSON.

This package knows no table.
"""
