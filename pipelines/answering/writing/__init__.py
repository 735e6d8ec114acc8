"""Writing: a draft becomes an answer's text, sent while it is written, and its citations."""
