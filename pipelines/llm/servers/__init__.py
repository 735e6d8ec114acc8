"""Servers of language models: what they say of themselves, and which of their models answers.

http gets JSON from a server, models reads its models and their context windows, discovery chooses where nothing is
configured.
"""

from pipelines.llm.servers.discovery import FoundLLM, find_llm
from pipelines.llm.servers.http import NoAnswer
from pipelines.llm.servers.models import ServedModel, Server, context_of, look_at
