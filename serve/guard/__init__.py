"""Protects the service: who may ask, how often, how much at once.

keys.py checks API keys, limits.py rate and concurrency, bodies.py size; policy.py puts them around the application.
"""
