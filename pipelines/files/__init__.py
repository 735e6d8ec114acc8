"""Files that other processes look for: written whole, with the rights that they need.

atomic_files writes them, locks says whether a process holds one, model_cards says which trained models may be used,
services announces what runs here.
"""
