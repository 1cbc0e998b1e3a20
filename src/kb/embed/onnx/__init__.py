"""The model at work, on ONNX Runtime."""
