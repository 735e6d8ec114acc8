"""Conversation: what a reader means, with the turns before a message and the page that is open."""
