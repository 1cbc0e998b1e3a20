"""Inference with ONNX Runtime."""
