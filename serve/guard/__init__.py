"""Protects the service: who may ask, how often, how much at once.

keys.py checks API keys, limits.py rate, size and concurrency; policy.py puts them around the application.
"""
