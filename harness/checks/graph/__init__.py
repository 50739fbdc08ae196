"""What a graph file shows without being run: pure functions from ONNX models to findings."""
