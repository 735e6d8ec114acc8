"""Which URLs of a site are visited, in which order, and how many."""
