"""What a person sees of a page of documentation, and how far Raydex's reading of it agrees."""
