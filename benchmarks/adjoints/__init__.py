"""Our gradients beside adjoints that are written by hand in C, one file of this folder for each function."""
