"""Embedding on ONNX Runtime: export makes the model's file once, int8 its products of bytes, embedder runs it."""
