"""The Slack bot: answers mentions and direct messages by asking the service over HTTP.

Knows neither Ray nor the database: it runs wherever Slack and the service can be reached.
"""
