"""The Model Context Protocol, over HTTP and over stdio, and llms.txt: what agents may look up.

toolbox.py does what the tools say, server.py speaks the protocol; endpoint.py (/mcp) and __main__.py (stdio) are its
transports.
"""
