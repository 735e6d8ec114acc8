"""Folders: files become pages, with the URLs that the site's generator gives them."""
