"""A bot of any chat platform: takes messages once, asks the service, keeps the reply up to date.

Knows no platform: `channel.Channel` is what one has to bring. Knows neither Ray nor the database.
"""
