"""Makes data sets out of a collection: questions, their sources and reference answers."""
