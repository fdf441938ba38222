"""What an ONNX file says, read without its weights, and what each ONNX Runtime can run."""
