"""The corpus of kernels."""
