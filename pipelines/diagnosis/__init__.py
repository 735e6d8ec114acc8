"""Diagnosis: checks whether everything that Raydex needs works, and says how to fix the rest.

check runs one check within its time limit; machine, database, models, cluster and endpoints are the checks. They change
nothing.
"""

from pipelines.diagnosis.check import Check, Finding, State, failed, fine, run_check, warning
