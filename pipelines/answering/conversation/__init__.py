"""Conversation: interprets a message, given the turns before it and the page that is open."""
