"""Commands, one file per verb: `raydex <verb>`, or `python -m jobs.<verb>` in a Ray job.

A command reads flags and environment variables, calls pipelines and prints a summary. No command imports another.
"""
