"""Notices: messages about a night or a week, sent by webhook, Slack or e-mail.

`teller.Teller` sends one notice over every channel in a collection file.
"""
