"""Servers of language models: what they say of themselves, and which of their models answers.

asking gets JSON from a server, listing reads its models and their context windows, finding chooses where nothing is
configured.
"""

from pipelines.llm.servers.asking import NoAnswer
from pipelines.llm.servers.finding import FoundLLM, find_llm
from pipelines.llm.servers.listing import ServedModel, Server, context_of, look_at

__all__ = ["FoundLLM", "NoAnswer", "ServedModel", "Server", "context_of", "find_llm", "look_at"]
