"""Makes data sets from a collection: questions, their sources and reference answers."""
