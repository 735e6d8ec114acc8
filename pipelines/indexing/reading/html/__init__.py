"""HTML: from a text to the page's own content, as plain HTML that the section writer reads."""
