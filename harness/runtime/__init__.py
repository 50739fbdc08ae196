"""Runs an artifact set with numpy, onnxruntime and sentencepiece: never torch or transformers."""
