"""Routing: which agent answers a question.

router has the interface, the fixed router and the router by classifier; rules are the operator's; classifier is the
text classifier that training fits.
"""
