"""Nights: update a collection automatically, and publish it only if nothing got worse.

`night.run_night` runs one night, step by step; each step is recorded in the row of its run.
"""
