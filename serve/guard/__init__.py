"""Protects the service: who may ask, how often, and how much at once.

keys.py checks API keys, limits.py rate and concurrency, bodies.py size; policy.py wraps them around the application.
"""
