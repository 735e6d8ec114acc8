"""Building: stored pages become chunks and vectors, in this process or on Ray."""
