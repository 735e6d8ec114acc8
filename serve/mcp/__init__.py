"""The Model Context Protocol: what coding agents may look up, over HTTP and over stdio.

toolbox.py does what the tools say, server.py speaks the protocol; endpoint.py, at /mcp, and __main__.py, over stdio, are
its transports.
"""
