"""Data becomes better models: adapter, embedding model, tags, router, reranker. Each is judged before it is used."""
