"""The Slack bot: answers mentions and direct messages by asking the service over HTTP.

Knows neither Ray nor the database: it runs on any machine that can reach Slack and the service.
"""
