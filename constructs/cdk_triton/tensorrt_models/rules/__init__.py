"""The rules about TensorRT models."""
