"""The PyTorch side, observed through the same contract as the ONNX Runtime side."""
