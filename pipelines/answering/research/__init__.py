"""Research: a model looks again for sections, with tools, before it answers."""
