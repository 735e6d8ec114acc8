"""OpenAI's API: collections are models, a chat completion is a cited answer."""
