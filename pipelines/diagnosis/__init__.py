"""Diagnosis: whether what Raydex needs is there and works, and what to do about what does not.

check runs one check within its time limit; machine, database, models, cluster and endpoints are the checks. They
change nothing.
"""

from pipelines.diagnosis.check import Check, Finding, State, failed, fine, run_check, warning
