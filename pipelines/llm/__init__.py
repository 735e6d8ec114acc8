"""Language models: a client for OpenAI-compatible endpoints, and what its callers share.

client and session make calls, retry asks until a reply is usable, replies reads what models write, window fits
texts to a model, cached keeps replies in a file.
"""

from pipelines.llm.cached import CachedModel
from pipelines.llm.client import LLM, Completion, LLMSettings
from pipelines.llm.errors import LLMFailed
from pipelines.llm.session import ChatModel, LLMSession
