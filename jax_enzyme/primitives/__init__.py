"""The JAX side: the kernel object, its primitive, and the rules for every transformation."""
