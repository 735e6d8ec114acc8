"""Notices: what a night or a week has to tell reaches people, by webhook, Slack or e-mail.

`teller.Teller` sends one notice by every way that a collection file names.
"""
