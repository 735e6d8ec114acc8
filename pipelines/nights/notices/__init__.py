"""Notices: messages about a night or a week, sent by webhook, Slack, e-mail or any other service.

`teller.Teller` sends one notice over every channel in a collection file.
"""
