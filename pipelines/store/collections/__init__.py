"""Collections, their copies and pages, what they are about, verified answers, announced changes."""
