"""Writing: turns a draft into the text of an answer, streamed while it is written, with citations."""
