"""Collections: their catalog, copies, pages and summaries, verified answers, announced changes."""
