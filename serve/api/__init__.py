"""The HTTP API.

serve/routes.py lists every route; these files contain their handlers, requests and replies.
"""
