"""Serves answers over HTTP with Ray Serve.

app.py composes the deployments; api/ has the routes, guard/ the protection in front of them, web/ the page.
"""
