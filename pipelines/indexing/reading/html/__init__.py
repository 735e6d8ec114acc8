"""HTML: from a text to the page's own content, and from that to a tree."""
