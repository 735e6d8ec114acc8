"""The Model Context Protocol: what coding agents may look up, over HTTP at /mcp and over stdio.

toolbox.py does what the tools say, server.py speaks the protocol, endpoint.py and __main__.py are its two transports.
"""
