"""A bot for any chat platform: takes each message once, asks the service, keeps the reply up to date.

Knows no platform: each one implements `channel.Channel`. Knows neither Ray nor the database.
"""
