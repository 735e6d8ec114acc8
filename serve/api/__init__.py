"""The HTTP API.

serve/routes.py lists every route; these files hold their handlers, requests and replies.
"""
