"""Nights: a collection is brought up to date by itself, and published only if nothing got worse.

`night.run_night` does one night, step by step; each step stands in the row of its run.
"""
