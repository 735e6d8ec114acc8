"""Tools for text that passes between programs and people.

`cleaning` adapts a string to its consumer, `progress` reports how far a job is, `retry_after` reads how long a server
asks clients to wait, and `server_errors` extracts the message from a server's error.
"""
