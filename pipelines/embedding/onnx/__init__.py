"""Embedding on ONNX Runtime: a model is exported once, then run.

export makes the model's file, int8 its products of bytes, embedder runs it, question_sessions shares the CPUs.
"""
