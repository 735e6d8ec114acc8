"""Folders: files become pages, with the URLs that the generator of the site gives them."""
