"""Compares configurations on the same questions: sweeps, records, gate and report."""
