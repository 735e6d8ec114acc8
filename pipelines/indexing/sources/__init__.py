"""Sources of pages, one file a kind: a site, a folder, or any other place."""
