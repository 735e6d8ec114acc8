"""Understanding: what a reader means by a message, without a language model."""
