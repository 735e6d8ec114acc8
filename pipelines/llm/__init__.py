"""Language models: a client for OpenAI-compatible endpoints, and the helpers its callers share.

client and session make calls, retry repeats a call until the reply is usable, replies parses replies, window fits
passages into a context window, cached keeps replies in a file.
"""

from pipelines.llm.cached import CachedModel
from pipelines.llm.client import LLM, Completion, LLMSettings
from pipelines.llm.errors import LLMFailed
from pipelines.llm.session import ChatModel, LLMSession
