"""Research: a model searches for more sections with tools before it answers."""
