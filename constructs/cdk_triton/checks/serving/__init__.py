"""CT60x to CT64x the release and the instance, CT7xx TensorRT's own parser."""
