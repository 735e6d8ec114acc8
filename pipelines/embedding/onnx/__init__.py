"""Embedding on ONNX Runtime: a model is exported once, then run.

export writes the model's file, int8 quantizes its matrix products, embedder runs it, question_sessions shares the CPUs.
"""
