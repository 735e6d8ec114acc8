"""Text from Slack becomes questions, answers become messages of Slack; no network."""
