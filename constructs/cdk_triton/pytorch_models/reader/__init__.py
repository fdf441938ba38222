"""What a file that PyTorch wrote says about itself, read without PyTorch."""
