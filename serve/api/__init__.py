"""The HTTP API.

routes.py lists every route; the other files hold their handlers, requests and replies.
"""
