"""Converts Slack messages to questions and answers to Slack messages, without network access."""
