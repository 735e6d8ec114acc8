"""The Model Context Protocol, over HTTP and stdio, and llms.txt: documentation access for agents.

toolbox.py implements the tools, server.py the protocol; endpoint.py (/mcp) and __main__.py (stdio) are its transports.
"""
