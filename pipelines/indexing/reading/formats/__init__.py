"""Formats other than HTML: what each parser gives becomes HTML or sections of text."""
