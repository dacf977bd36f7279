"""How long a gradient takes beside its function: `python -m benchmarks`, or `make bench`."""
