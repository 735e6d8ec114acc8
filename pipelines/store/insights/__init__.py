"""What insights read of the database: questions without names, pages and sections of an index."""
