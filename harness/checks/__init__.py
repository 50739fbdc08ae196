"""Pure functions from observations to findings. Needs the contract, numpy and onnx only."""
