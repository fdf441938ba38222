"""The rules about ONNX models."""
