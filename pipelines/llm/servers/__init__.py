"""Servers of language models: the models that they list, and the choice of one to answer with.

http requests JSON from a server, models reads its models and their context windows, discovery chooses a model if none
is configured.
"""

from pipelines.llm.servers.discovery import FoundLLM, find_llm
from pipelines.llm.servers.http import NoAnswer
from pipelines.llm.servers.models import ServedModel, Server, context_of, look_at
