"""The pages for a browser: the one to ask at, and the one that shows the API."""
