"""Sources of pages, one file a kind: what a run knows of a site, a folder, or any other place that pages come from."""
