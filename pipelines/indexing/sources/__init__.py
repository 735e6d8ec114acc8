"""Sources of pages, one file per kind: a site, a folder, or any other place."""
