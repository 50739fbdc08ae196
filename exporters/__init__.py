"""PyTorch -> ONNX. The only code that traces."""
