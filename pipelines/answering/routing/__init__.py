"""Routing: which agent answers a question.

`router` has the interface, the fixed router and the classifier router; `rules` has the operator's rules; `classifier`
is the text classifier that training fits.
"""
